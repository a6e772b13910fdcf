"""Whole networks, one file each."""
