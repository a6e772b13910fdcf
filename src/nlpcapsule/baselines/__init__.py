"""Fourth step too: the systems capsules are compared with; one small file each."""
