"""Eighth step: looking into a trained model: its routing, its curves, and a page that reports on it."""
