"""Primary capsules: turn every scalar of the feature maps into a small vector."""

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.squash import squash

# Lower bound of a squared length: the slope of the root at 0 is infinite.
_SHORTEST = 1e-12


class PrimaryCapsules(nn.Module):
    """The paper's p_i = g(m_i w_1 ⊕ … ⊕ m_i w_d): a 1×1 group convolution, then squash.

    Each filter has its own w in R^d and its own bias. One w for all filters would make every capsule a
    multiple of the same vector.
    """

    def __init__(self, filters: int, size: int = 16, kappa: float = 1.0) -> None:
        super().__init__()
        self.kappa = kappa
        self.weight = nn.Parameter(torch.empty(filters, size).uniform_(-1.0, 1.0))
        # Zero, so that an absent feature starts as a capsule of length zero.
        self.bias = nn.Parameter(torch.zeros(filters, size))

    def forward(self, feature_maps: Tensor) -> Tensor:
        """Map feature maps (B, F, L) to primary capsules (B, F·L, d), filter by filter."""
        # A group convolution of width 1 is an elementwise product; this form yields d last without a copy.
        bias, weight = self.bias[:, None, :], self.weight[:, None, :]  # (F, 1, d)
        lifted = torch.addcmul(bias, feature_maps.unsqueeze(-1), weight)  # (B, F, L, d)
        return squash(lifted, self.kappa).flatten(1, 2)  # (B, F·L, d)


def capsule_factors(feature_maps: Tensor, weight: Tensor, bias: Tensor, kappa: float) -> Tensor:
    """Return s m and s (2, B, F, L) of maps (B, F, L), where capsule i is p_i = (s m)_i w + s_i bias.

    The squash only scales a vector, g(x) = s x with s = ‖x‖ / (κ + ‖x‖²), and
    ‖m w + bias‖² = m² ‖w‖² + 2 m ⟨w, bias⟩ + ‖bias‖² needs no vector either; w and bias are (F, d).
    """
    with torch.autocast(feature_maps.device.type, enabled=False):
        maps = feature_maps.float() if feature_maps.dtype != torch.float64 else feature_maps  # (B, F, L)
        products = (weight * weight, weight * bias, bias * bias)
        square, cross, constant = (each.sum(dim=-1)[:, None] for each in products)  # (F, 1) each
        squared = torch.addcmul(constant, maps, maps * square + 2.0 * cross).clamp_min(_SHORTEST)
        stretch = squared.sqrt() / (kappa + squared)  # (B, F, L)
        return torch.stack([stretch * maps, stretch])
