"""Predict in parts: rows are split into shards, workers rank them, results are joined in order."""
