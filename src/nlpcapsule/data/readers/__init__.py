"""Readers of files: JSON Lines, tables, and the published layouts of known data sets."""
