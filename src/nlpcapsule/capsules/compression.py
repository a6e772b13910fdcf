"""Capsule compression: reduce thousands of primary capsules to a few condensed ones."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.primary import PrimaryCapsules

# Initial scales below this are left unchanged.
NEGLIGIBLE_START = 1e-6
# The root mean square length of an initial primary capsule: about half of the ReLU's features are
# absent (length 0), the others are squashed to slightly below 1.
PRIMARY_LENGTH = 0.5


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
        for the (B, P, d) capsules. There is a layer and a feature map for each filter width.
        """
        widths = [feature.shape[1] * feature.shape[2] for feature in feature_maps]
        parts = []
        for layer, feature, rows in zip(layers, feature_maps, self.weight.split(widths, dim=1), strict=True):
            filters = rows.unflatten(1, feature.shape[1:])  # (m, F, L)
            pooled = torch.einsum("mfl,cbfl->cbfm", filters, layer.factors(feature))  # (2, B, F, m)
            vectors = torch.stack([layer.weight, layer.bias])  # (2, F, d)
            parts.append(torch.einsum("cbfm,cfd->bmd", pooled, vectors.to(pooled.dtype)))  # (B, m, d)
        return sum(parts[1:], start=parts[0])

    @torch.no_grad()
    def scale_start(self, condensed: Tensor, length: float) -> None:
        """Scale b so that the condensed capsules (B, m, d) have this mean length."""
        found = torch.linalg.vector_norm(condensed, dim=-1).mean()
        if found > NEGLIGIBLE_START:  # documents without a known word do not determine the scale
            self.weight.mul_(length / found)
