"""Encoders: map token ids to states, one vector per token. `encoder` has the interface."""
