"""Mean shift routing, fixed and adaptive, in two GPU kernels per iteration.

The results are those of `kde_mean_shift` and `adaptive_kde` up to rounding. There, every sum and product is
a pass over the votes (B, m, n, d), which takes nearly all of a step of `paper`; here one kernel of an
iteration reads them once, in the precision that they were formed in, and computes in float32; the other adds
up what its programs found. A document that has stopped costs nothing more, and the GPU never waits for the
CPU to decide about it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlpcapsule.capsules.routing.routed import Routed, activation, mask_padding
from nlpcapsule.capsules.softmax import SoftmaxKind
from nlpcapsule.capsules.votes import FormedVotes
from nlpcapsule.fused.trial import works

_MOST_LOGIT = 60.0  # exp(b) is summed as it is
_MOST_NUMBERS = 2**14  # of the votes for one output, which a program holds
# Numbers of these per warp, as was fastest on an H200.
_FORWARD, _BACKWARD, _GRADIENTS = 2048, 2048, 1024
_SUMMED = {"I": 16, "J": 64}  # inputs of a program that sums over outputs, and outputs that it reads at once


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
        and _above(votes.shape[1]) * _above(votes.shape[3]) <= _MOST_NUMBERS
        and votes.formed.numel() < 2**31  # places are 32-bit numbers
        and votes.shape[0] < 2**16  # as many programs as CUDA can number in a grid
        and 0 < options.alpha * options.iterations <= _MOST_LOGIT
        and works(_trial, "cuda", votes.shape[1], votes.shape[3], votes.formed.dtype, options)
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
        documents, inputs, outputs, size = votes.shape
        most, leak, is_padded = options.iterations, float(options.softmax == "leaky"), valid is not None
        # Iterations whose logits are kept; two at least, since a thread may read what another one writes.
        kept = max(2, most - 1) if ctx.needs_input_grad[0] else 2
        logits = _empty(votes, kept, documents, outputs, inputs)
        mass = _empty(votes, most + 1, documents, inputs)
        means, totals = _empty(votes, most, documents, outputs, size), _empty(votes, most, documents, outputs)
        agreed, capsules, coupling = (torch.empty_like(each[0]) for each in (totals, means, logits))
        agreement = _empty(votes, documents, most)
        running, used = (
            _empty(votes, most + 1, documents, dtype=torch.int32),
            _empty(votes, documents, dtype=torch.int32),
        )
        share = votes.new_full((documents,), 1 / max(1.0, outputs + leak), dtype=torch.float32)
        if valid is not None:
            share = 1 / (valid.sum(dim=1) + leak).clamp_min(1.0)
        for number in range(most):
            before, after = (number - 1) % kept, number % kept
            place = {"HAS_VALID": is_padded, "FIRST": number == 0, "LAST": number == most - 1}
            iterate[outputs, documents](
                votes,
                valid,
                share,
                logits[before],
                mass[number],
                running[number],
                logits[after],
                means[number],
                totals[number],
                agreed,
                capsules,
                coupling,
                *votes.stride()[:3],
                outputs,
                options.kappa,
                options.alpha,
                MAY_STOP=place["LAST"] or options.epsilon >= 0,
                **place,
                **_tile(votes, _FORWARD),
            )
            settle[-(-inputs // _SUMMED["I"]), documents](
                valid,
                logits[after],
                agreed,
                running[number],
                mass[number + 1],
                agreement,
                running[number + 1],
                used,
                number,
                most,
                outputs,
                leak,
                options.epsilon,
                **place,
                m=inputs,
                **_SUMMED,
            )
        ctx.save_for_backward(votes, logits, mass, means, totals, used, *([valid] if is_padded else []))
        ctx.options = options
        iterations, coupling = used.long(), coupling.transpose(1, 2)
        ctx.mark_non_differentiable(iterations, agreement, coupling)
        return capsules, iterations, agreement, coupling

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        """Return the gradient of the votes."""
        from nlpcapsule.fused.mean_shift_backward import iterate_back, sum_outputs, vote_gradients

        votes, logits, mass, means, totals, used, *rest = ctx.saved_tensors
        valid, options = rest[0] if rest else None, ctx.options
        documents, inputs, outputs, size = votes.shape
        later = options.iterations - 1  # iterations after the first
        g_logits = _empty(votes, 2, documents, outputs, inputs)  # read, and written for the iteration before
        g_softmax, g_sum = torch.empty_like(g_logits[0]), _empty(votes, documents, inputs)
        g_kernel, fraction = _empty(votes, 2, later, documents, outputs, inputs, dtype=votes.dtype)
        g_means, g_capsules = _empty(votes, later, documents, outputs, size), gradients[0].contiguous()
        for number in range(later, 0, -1):
            iterate_back[outputs, documents](
                votes,
                valid,
                logits[number - 1],
                mass[number],
                mass[number + 1],
                means[number],
                totals[number],
                used,
                g_capsules,
                g_logits[(number + 1) % 2],
                g_sum,
                g_logits[number % 2],
                g_softmax,
                g_kernel[number - 1],
                fraction[number - 1],
                g_means[number - 1],
                *votes.stride()[:3],
                number,
                outputs,
                options.kappa,
                options.alpha,
                HAS_VALID=valid is not None,
                **_tile(votes, _BACKWARD),
            )
            sum_outputs[-(-inputs // _SUMMED["I"]), documents](g_softmax, g_sum, outputs, m=inputs, **_SUMMED)
        g_votes = torch.empty_like(votes)
        vote_gradients[outputs, documents](
            votes,
            valid,
            mass[1],
            used,
            g_capsules,
            g_logits[1],
            g_sum,
            means,
            g_means,
            g_kernel,
            fraction,
            g_votes,
            *votes.stride()[:3],
            documents,
            outputs,
            options.kappa,
            options.alpha,
            HAS_VALID=valid is not None,
            **_tile(votes, _GRADIENTS),
        )
        return g_votes, None, None


def _trial(device: str, inputs: int, size: int, kind: torch.dtype, options: Options) -> None:
    votes = torch.ones((2, inputs, 3, size), dtype=kind, device=device, requires_grad=True)
    capsules, *_ = _MeanShift.apply(votes, options, None)
    capsules.sum().backward()


def _tile(votes: Tensor, per_warp: int) -> dict[str, int]:
    """Return the sizes of a program's votes, and its warps."""
    high, deep = _above(votes.shape[1]), _above(votes.shape[3])
    warps = min(16, max(1, high * deep // per_warp))
    return {"m": votes.shape[1], "d": votes.shape[3], "M": high, "D": deep, "num_warps": warps}


def _empty(like: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return like.new_empty(shape, dtype=dtype)


def _above(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()
