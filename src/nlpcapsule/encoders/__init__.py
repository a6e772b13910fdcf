"""Encoders: token ids become states, one vector per token. `encoder` has the interface, `build` chooses."""
