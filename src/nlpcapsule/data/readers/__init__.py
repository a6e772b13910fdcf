"""Readers of files: JSON Lines, tables, lines of text, and the extreme classification repository."""
