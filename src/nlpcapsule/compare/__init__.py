"""Beside the pipeline: systems trained and measured side by side on a user's own data."""
