"""Votes W_ij u_i of shared outputs in one GPU kernel, and their gradients in another.

Torch gathers rows of W, converts and reorders them, and multiplies: four passes over numbers by the million,
and as many backward. Here a program reads the matrices of one input capsule and a few outputs from the table
and multiplies. The votes are (B, n, m, d) in memory, so that those for an output are read in one go.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nlpcapsule.capsules.pair_transforms import PairTransforms, gradient_of_rows
from nlpcapsule.capsules.votes import FormedVotes
from nlpcapsule.fused.trial import works

_LARGEST = 64  # capsule size that the products of a program have room for
_MOST_OUTPUTS = 2**10  # each few of them have a part of the capsules' gradient
_COLUMNS = 128  # (j, h) of a program
_DOCUMENTS = 64  # at a time


def can_form(capsules: Tensor, transforms: PairTransforms, outputs: Tensor | None) -> bool:
    """Return whether a kernel can form these votes: those for ids (n,) on a GPU, in bf16 or float32."""
    return (
        outputs is not None
        and outputs.dim() == 1
        and transforms.sparse
        and capsules.is_cuda
        and _kind(capsules) in (torch.float32, torch.bfloat16)
        and transforms.size <= _LARGEST
        and 0 < len(outputs) <= _MOST_OUTPUTS
        and len(outputs) * max(capsules.numel(), transforms.rows.shape[1]) < 2**31  # 32-bit places
        and works(
            _trial, "cuda", _at_once(len(capsules)), *capsules.shape[1:], capsules.dtype, _kind(capsules)
        )
    )


def form_pair_votes(capsules: Tensor, transforms: PairTransforms, outputs: Tensor) -> FormedVotes:
    """Compute û_{j|i} = W_ij u_i (B, m, n, d) of capsules u (B, m, d) for distinct ids (n,), ascending."""
    votes = _PairVotes.apply(capsules, transforms.rows, outputs, _kind(capsules))  # (B, n, m, d)
    return FormedVotes(votes.transpose(1, 2))


class _PairVotes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, capsules: Tensor, table: Tensor, ids: Tensor, kind: torch.dtype) -> Tensor:
        """Return the votes (B, n, m, d)."""
        from nlpcapsule.fused.pair_vote_kernels import form

        capsules = capsules if capsules.stride(-1) == 1 else capsules.contiguous()
        documents, inputs, size = capsules.shape
        votes = torch.empty((documents, len(ids), inputs, size), dtype=kind, device=capsules.device)
        grid, shape = _tiles(capsules, ids)
        sizes = (*capsules.stride()[:2], documents, len(ids), table.shape[1])
        form[grid](capsules, table, ids, votes, *sizes, **shape)
        ctx.save_for_backward(capsules, table, ids)
        return votes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None, None]:
        """Return the gradients of the capsules and, with these rows alone, of the table."""
        from nlpcapsule.fused.pair_vote_kernels import form_back

        capsules, table, ids = ctx.saved_tensors
        grid, shape = _tiles(capsules, ids)
        g_rows = torch.empty((len(ids), table.shape[1]), device=table.device)
        parts = torch.empty((grid[1], *capsules.shape), device=table.device)
        sizes = (*capsules.stride()[:2], len(capsules), len(ids), table.shape[1])
        form_back[grid](capsules, table, ids, gradients[0].contiguous(), g_rows, parts, *sizes, **shape)
        g_capsules = parts.sum(dim=0).to(capsules.dtype)
        return g_capsules, gradient_of_rows(ids, g_rows, table.shape), None, None


def _kind(capsules: Tensor) -> torch.dtype:
    """Return the type of the votes: that of autocast, or of the capsules."""
    device = capsules.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else capsules.dtype


def _tiles(capsules: Tensor, ids: Tensor) -> tuple[tuple[int, int], dict[str, int]]:
    """Return the grid of programs, and the sizes of their products, of 16 at least."""
    documents, inputs, size = capsules.shape
    deep = max(16, 1 << (size - 1).bit_length())
    wide = max(1, _COLUMNS // deep)
    grid, at_once = (inputs, -(-len(ids) // wide)), _at_once(documents)
    return grid, {"m": inputs, "d": size, "J": wide, "D": deep, "DOCUMENTS": at_once, "num_warps": 4}


def _at_once(documents: int) -> int:
    return min(_DOCUMENTS, max(16, 1 << (documents - 1).bit_length()))


def _trial(
    device: str, documents: int, inputs: int, size: int, given: torch.dtype, kind: torch.dtype
) -> None:
    capsules = torch.ones((documents, inputs, size), dtype=given, device=device, requires_grad=True)
    table = torch.ones((3, inputs * size**2), device=device, requires_grad=True)
    votes: Tensor = _PairVotes.apply(capsules, table, torch.arange(2, device=device), kind)
    votes.sum().backward()
