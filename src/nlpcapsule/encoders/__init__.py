"""Encoders: token ids become states, one vector per token."""
