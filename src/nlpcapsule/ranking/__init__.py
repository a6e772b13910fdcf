"""Sixth step: from a network's scores to ranked labels and ranked answers."""
