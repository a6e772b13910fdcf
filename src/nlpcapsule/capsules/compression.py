"""Capsule compression: reduce thousands of primary capsules to a few condensed ones."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.capsules.primary import PrimaryCapsules, capsule_factors

# Initial scales below this are left unchanged.
NEGLIGIBLE_START = 1e-6
# The root mean square length of an initial primary capsule: about half of the ReLU's features are
# absent (length 0), the others are squashed to slightly below 1.
PRIMARY_LENGTH = 0.5
_ALIGNED = 8  # numbers that a GPU's matrix units read at once


class CapsuleCompression(nn.Module):
    """The paper's u_i = Σ_j b_ij p_j with a learned (m, P) matrix b.

    The matrix starts at N(0, σ²) with σ² = 1 / (P · PRIMARY_LENGTH²), so that E‖u_i‖² = σ² Σ_j ‖p_j‖² ≈ 1:
    with much shorter condensed capsules the votes are short as well, and routing has no effect.
    """

    def __init__(self, primary: int, condensed: int) -> None:
        super().__init__()
        deviation = 1.0 / (PRIMARY_LENGTH * primary**0.5)
        self.weight = nn.Parameter(torch.empty(condensed, primary).normal_(std=deviation))  # (m, P)

    def forward(self, primary_capsules: Tensor) -> Tensor:
        """Condense primary capsules (B, P, d) to (B, m, d)."""
        return torch.einsum("mp,bpd->bmd", self.weight, primary_capsules)

    def condense(self, layers: Sequence[PrimaryCapsules], feature_maps: Sequence[Tensor]) -> Tensor:
        """Condense the primary capsules of feature maps (B, F, L) to (B, m, d) without computing them.

        All capsules of a filter are p = (s m) w + s bias, so that
        Σ_l b_il p_l = (Σ_l b_il s_l m_l) w + (Σ_l b_il s_l) bias: d times less computation and memory than
        for the (B, P, d) capsules. Maps of all filter widths are padded to one length, for one product.
        """
        length = -(-max(feature.shape[2] for feature in feature_maps) // _ALIGNED) * _ALIGNED
        rows = self.weight.split([feature.shape[1] * feature.shape[2] for feature in feature_maps], dim=1)
        shaped = [
            each.unflatten(1, feature.shape[1:]) for each, feature in zip(rows, feature_maps, strict=True)
        ]
        filters = _joined(shaped, length)  # (m, ΣF, L)
        weight = torch.cat([layer.weight for layer in layers])  # (ΣF, d)
        bias = torch.cat([layer.bias for layer in layers])  # (ΣF, d)
        factors = capsule_factors(_joined(feature_maps, length), weight, bias, layers[0].kappa)
        pooled = torch.einsum("mfl,cbfl->cbfm", filters, factors)  # (2, B, ΣF, m)
        return torch.einsum("cbfm,cfd->bmd", pooled, torch.stack([weight, bias]).to(pooled.dtype))

    @torch.no_grad()
    def scale_start(self, condensed: Tensor, length: float) -> None:
        """Scale b so that the condensed capsules (B, m, d) have this mean length."""
        found = torch.linalg.vector_norm(condensed, dim=-1).mean()
        if found > NEGLIGIBLE_START:  # documents without a known word do not determine the scale
            self.weight.mul_(length / found)


def _joined(maps: Sequence[Tensor], length: int) -> Tensor:
    """Pad maps (…, F, L) with zeros to one length, and join them (…, ΣF, length)."""
    return torch.cat([F.pad(each, (0, length - each.shape[2])) for each in maps], dim=1)
