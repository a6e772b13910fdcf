"""GPU kernels for routing and row updates, for a machine with Triton; `RowAdam` also works without them."""
