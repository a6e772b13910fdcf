"""Scale a document's capsules for the agreement kernel."""

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.votes import at_least_float32

# Capsules closer to each other than a hundredth of their length count as equal.
_ALIKE = 1e-4
_LEAST_RATE = 0.02  # running mean over about the last fifty batches, since capsules spread while they learn
_SETTLED = 0.5  # fraction of documents that should stop after two iterations
_STEER = 0.05  # how fast β adapts: e-fold in about forty batches if all documents agree


class VoteScale(nn.Module):
    """Scale capsules by the spread of those of a typical training document.

    A document's spread is h² = mean_i ‖u_i - ū‖² / d, and H² the geometric mean of the spreads of documents
    trained on, kept as a running mean of log h². Capsules come out as (u_i - ū) / √(β H²), so that

        1 - ‖u_i - v_j‖² / d  becomes  1 - ‖u_i - v_j‖² / (β H² d)

    for every mean v_j of them. H is the same for all documents: a document whose capsules lie far apart has
    more to route than one whose capsules are alike.

    The change of agreement between iterations depends on how sharp the learned couplings are. So β is adapted
    in training: it decreases while more than half of the documents settle in the second iteration, and
    increases while fewer do. Outside training H and β are fixed, so a document's result depends on no other.
    β starts at `bandwidth`.
    """

    bandwidth: Tensor
    log_spread: Tensor
    batches: Tensor

    def __init__(self, bandwidth: float) -> None:
        super().__init__()
        self.register_buffer("bandwidth", torch.tensor(bandwidth))
        self.register_buffer("log_spread", torch.zeros(()))  # log H², 0 before any training
        self.register_buffer("batches", torch.zeros(()))  # seen in training

    def forward(self, capsules: Tensor, real: Tensor | None = None) -> Tensor:
        """Scale capsules (B, m, d) for the kernel, in float32 at least; `real` (B, m) is False at padding."""
        with torch.autocast(capsules.device.type, enabled=False):
            capsules = at_least_float32(capsules)
            ones = capsules.new_ones(capsules.shape[:2]) if real is None else real.to(capsules.dtype)
            share = (ones / ones.sum(dim=1, keepdim=True).clamp_min(1)).unsqueeze(1)  # (B, 1, m)
            centred = capsules - share @ capsules  # (B, m, d)
            if self.training:
                self._learn(share, capsules.detach(), centred.detach())
            return centred * (self.bandwidth * self.log_spread.exp()).rsqrt()

    def steer(self, agreement: Tensor, eps: float) -> None:
        """Adapt β, in training only, to a batch's NAS (B, T) by iteration, NaN where there is none.

        A change below ε means that a document has settled.
        """
        if not self.training or agreement.shape[1] < 2:
            return
        moved = (agreement[:, 1] - agreement[:, 0]).abs()  # (B,)
        still = (moved < eps).float().mean() - _SETTLED
        # With at most two iterations the second is not scored.
        self.bandwidth *= torch.where(moved.isnan().any(), 0.0, -_STEER * still).exp()

    def _learn(self, share: Tensor, capsules: Tensor, centred: Tensor) -> None:
        spread = share @ centred.square().mean(dim=-1, keepdim=True)  # h² (B, 1, 1)
        length = share @ capsules.square().mean(dim=-1, keepdim=True)  # mean_i ‖u_i‖² / d (B, 1, 1)
        seen = (spread + _ALIKE * length).log().mean()
        self.batches += 1
        rate = (1.0 / self.batches).clamp_min(_LEAST_RATE)
        self.log_spread += rate * (seen - self.log_spread)
