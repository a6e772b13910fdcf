"""Seventh step: ranked labels and answers beside the truth → figures, intervals, tables."""
