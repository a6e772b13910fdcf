"""The squashing non-linearity: keep a capsule's direction and map its length to [0, 1)."""

import torch
from torch import Tensor


def squash(x: Tensor, kappa: float = 1.0, dim: int = -1) -> Tensor:
    """Return the paper's g(x) = ‖x‖² / (κ + ‖x‖²) · x / ‖x‖.

    Computed as ‖x‖ / (κ + ‖x‖²) · x, which never divides by zero: value and gradient at x = 0 are 0, as in
    the limit. A vector of length √κ is mapped to length ½; κ is 1 in the paper, 0.5 in the released code.

    Example:
        >>> squash(torch.tensor([3.0, 4.0])).norm()
        tensor(0.9615)
    """
    length = torch.linalg.vector_norm(x, dim=dim, keepdim=True)
    return x * (length / (kappa + length.square()))
