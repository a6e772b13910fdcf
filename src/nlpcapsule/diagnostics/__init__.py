"""Inspect a trained model: its routing, its curves, and a report page."""
