"""Mean shift routing, fixed and adaptive, in two GPU kernels per iteration.

The results are those of `kde_mean_shift` and `adaptive_kde` up to rounding. There, every sum and product is
a pass over the votes (B, m, n, d), which takes nearly all of a step of `paper`; here one kernel of an
iteration reads them, in the precision that they were formed in, and computes in float32; the other adds up
what its programs found. A document that has stopped costs nothing more, and the GPU never waits for the CPU
to decide about it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlpcapsule.capsules.routing.routed import Routed, activation, mask_padding
from nlpcapsule.capsules.softmax import SoftmaxKind
from nlpcapsule.capsules.votes import FormedVotes
from nlpcapsule.fused.row_adam import kernels_work

_SETTLED_AT_A_TIME = 16  # tiles whose parts are added together
_MOST_LOGIT = 60.0  # exp(b) is summed as it is


class Tiling(NamedTuple):
    """How votes are shared out among programs, as was fastest on an H200."""

    outputs: int  # of a program, at most
    numbers: int  # of the votes that it has in hand
    warps: int
    stages: int  # votes loaded ahead, in tiles


FORWARD = Tiling(outputs=8, numbers=4096, warps=8, stages=1)
BACKWARD = Tiling(outputs=16, numbers=1024, warps=4, stages=1)
GRADIENTS = Tiling(outputs=16, numbers=1024, warps=4, stages=1)


class Options(NamedTuple):
    """What a routing is called with."""

    iterations: int  # T, or T_max
    epsilon: float  # a document stops when its score moves less; negative: never
    softmax: SoftmaxKind
    kappa: float
    alpha: float


def can_fuse(votes: FormedVotes, options: Options) -> bool:
    """Return whether the kernels can route these votes."""
    return (
        votes.device.type == "cuda"
        and votes.dtype == torch.float32
        and votes.shape[3] <= min(FORWARD.numbers, BACKWARD.numbers, GRADIENTS.numbers)
        and votes.formed.numel() < 2**31  # places are 32-bit numbers
        and max(votes.shape[1:3]) < 2**16  # as many programs as CUDA can number in a grid
        and options.alpha * options.iterations <= _MOST_LOGIT
        and kernels_work()
    )


def fused_mean_shift(votes: FormedVotes, options: Options, valid: Tensor | None = None) -> Routed:
    """Route votes as `kde_mean_shift`, or as `adaptive_kde` where ε is not negative."""
    with torch.autocast(votes.device.type, enabled=False):
        capsules, used, agreement, coupling = _MeanShift.apply(votes.formed, options, valid)
        capsules = mask_padding(capsules, valid)
        return Routed(capsules, activation(capsules), used, agreement, coupling)


class _MeanShift(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, votes: Tensor, options: Options, valid: Tensor | None) -> tuple[Tensor, ...]:
        """Return v (B, n, d), iterations (B,), agreement (B, T) and couplings (B, m, n)."""
        from nlpcapsule.fused.mean_shift_forward import iterate, settle

        # Their gradient gets the same strides, which only votes without gaps allow.
        has_gaps = votes.stride() != torch.empty_like(votes, device="meta").stride()
        votes = votes.contiguous() if has_gaps or votes.stride(-1) != 1 else votes
        valid = None if valid is None else valid.contiguous()
        tiles = _Tiles(votes, FORWARD)
        documents, inputs, outputs, size = votes.shape
        most, leak = options.iterations, float(options.softmax == "leaky")
        # Iterations whose logits are kept; two at least, since a thread may read what another one writes.
        kept = max(2, most - 1) if ctx.needs_input_grad[0] else 2
        logits = _empty(votes, kept, documents, inputs, outputs)
        within = torch.empty_like(logits, dtype=torch.int8)
        near = _empty(votes, kept, documents, outputs, dtype=torch.int32)
        mass = _empty(votes, most + 1, documents, inputs)
        means, totals = _empty(votes, most, documents, outputs, size), _empty(votes, most, documents, outputs)
        part_of_mass = _empty(votes, documents, tiles.count, inputs)
        part_of_agreement = _empty(votes, documents, tiles.count)
        capsules, coupling = torch.empty_like(means[0]), torch.empty_like(logits[0])
        agreement = votes.new_full((documents, most), torch.nan, dtype=torch.float32)
        running = votes.new_ones(documents, dtype=torch.int32)
        used = torch.zeros_like(running)
        counted = outputs if valid is None else valid.sum(dim=1)
        share = 1 / (votes.new_full((documents,), leak, dtype=torch.float32) + counted).clamp_min(1.0)
        for number in range(most):
            before, after = (number - 1) % kept, number % kept
            iterate[tiles.grid](
                votes,
                valid,
                share,
                logits[before],
                within[before],
                near[before],
                mass[number],
                running,
                logits[after],
                within[after],
                near[after],
                means[number],
                totals[number],
                part_of_mass,
                part_of_agreement,
                capsules,
                coupling,
                *tiles.strides,
                outputs,
                options.kappa,
                options.alpha,
                HAS_VALID=valid is not None,
                FIRST=number == 0,
                LAST=number == most - 1,
                **tiles.loop,
            )
            settle[(documents,)](
                part_of_mass,
                part_of_agreement,
                mass[number + 1],
                agreement,
                running,
                used,
                number,
                most,
                tiles.count,
                leak,
                options.epsilon,
                m=inputs,
                M=_above(inputs),
                TILES=_SETTLED_AT_A_TIME,
            )
        saved = [votes, logits, within, near, mass, means, totals, used]
        ctx.save_for_backward(*saved, *([] if valid is None else [valid]))
        ctx.options = options
        iterations = used.long()
        ctx.mark_non_differentiable(iterations, agreement, coupling)
        return capsules, iterations, agreement, coupling

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        """Return the gradient of the votes."""
        from nlpcapsule.fused.mean_shift_backward import iterate_back, vote_gradients

        votes, logits, within, near, mass, means, totals, used, *rest = ctx.saved_tensors
        valid, options, tiles = rest[0] if rest else None, ctx.options, _Tiles(votes, BACKWARD)
        documents, inputs, outputs, _ = votes.shape
        g_logits = _empty(votes, 2, documents, inputs, outputs)  # read, and written for the iteration before
        g_kernel = _empty(votes, options.iterations, documents, inputs, outputs)
        fraction, g_means = torch.empty_like(g_kernel), torch.empty_like(means)
        part_of_sum = _empty(votes, documents, tiles.count, inputs)
        g_sum = _empty(votes, documents, inputs)
        g_capsules = gradients[0].contiguous()
        for number in reversed(range(options.iterations)):
            before = max(0, number - 1)
            iterate_back[tiles.grid](
                votes,
                valid,
                logits[before],
                within[before],
                near[before],
                mass[number],
                mass[number + 1],
                means[number],
                totals[number],
                used,
                g_capsules,
                g_logits[(number + 1) % 2],
                g_logits[number % 2],
                g_sum,
                g_kernel[number],
                fraction[number],
                g_means[number],
                part_of_sum,
                *tiles.strides,
                number,
                outputs,
                options.kappa,
                options.alpha,
                HAS_VALID=valid is not None,
                FIRST=number == 0,
                **tiles.loop,
            )
            torch.sum(part_of_sum, dim=1, out=g_sum)
        g_votes, tiles = torch.empty_like(votes), _Tiles(votes, GRADIENTS)
        vote_gradients[*tiles.grid, -(-inputs // tiles.shape["I"])](
            votes,
            g_votes,
            used,
            g_kernel,
            fraction,
            means,
            g_means,
            *tiles.strides,
            documents,
            outputs,
            options.kappa,
            MOST=options.iterations,
            **tiles.shape,
        )
        return g_votes, None, None


class _Tiles:
    """How the votes of a batch are shared out among programs."""

    def __init__(self, votes: Tensor, tiling: Tiling) -> None:
        documents, inputs, outputs, size = votes.shape
        deep = _above(size)
        wide = max(1, min(tiling.outputs, _above(outputs), tiling.numbers // deep))  # outputs of a program
        high = max(1, min(tiling.numbers // (wide * deep), _above(inputs)))  # inputs at a time
        self.shape = {"m": inputs, "d": size, "I": high, "J": wide, "D": deep, "num_warps": tiling.warps}
        self.loop = {**self.shape, "STAGES": tiling.stages}
        self.count = -(-outputs // wide)
        self.grid = (documents, self.count)
        self.strides = votes.stride()[:3]


def _empty(like: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return like.new_empty(shape, dtype=dtype)


def _above(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()
