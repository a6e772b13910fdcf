"""Fourth step: whole networks, tokens in, a score per output out; one small file each."""
