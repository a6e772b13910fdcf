"""Routing in a few GPU kernels, for a machine with Triton; without it nothing here is used."""
