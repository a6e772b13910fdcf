"""Scores become ranked labels and ranked answers."""
