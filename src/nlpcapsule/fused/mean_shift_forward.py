"""Triton kernels of mean shift routing: an iteration, and its end. `one_output` explains the letters."""

import triton
import triton.language as tl

from nlpcapsule.fused.one_output import (
    NEGLIGIBLE,
    TINY,
    couple,
    kernel_of,
    signed_logits,
    squash_of,
    stretch_of,
)


@triton.jit(do_not_specialize=["n"])
def iterate(
    votes,
    valid,
    share,  # (B,) the coupling of the first iteration
    logits,  # b
    mass,  # (B, m) Σ_j exp(b), with the leak
    running,  # (B,)
    next_logits,
    means,  # (B, n, d) out: x
    totals,  # (B, n) out: Σ_i w
    agreed,  # (B, n) out: Σ_i w k / Σ_i w
    capsules,  # (B, n, d) out: v
    coupling,  # out: c
    by_document,
    by_input,
    by_output,
    n,
    kappa,
    alpha,
    HAS_VALID: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    MAY_STOP: tl.constexpr,  # whether documents may end with this iteration
    m: tl.constexpr,
    d: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
):
    """Run an iteration of a document for an output."""
    document, j = tl.program_id(1).to(tl.int64), tl.program_id(0)
    runs = True
    if not FIRST:
        runs = tl.load(running + document) != 0
    if runs:
        row = document * n + j
        counts = True
        if HAS_VALID:
            counts = tl.load(valid + row) != 0
        i, h = tl.arange(0, M), tl.arange(0, D)
        exists, inside = i < m, h < d
        places = document * by_document + j * by_output + i[:, None] * by_input + h[None, :]
        u = tl.load(votes + places, mask=exists[:, None] & inside[None, :], other=0).to(tl.float32)
        if FIRST:  # all votes weigh the same
            b = tl.zeros((M,), tl.float32)
            c = tl.where(exists & counts, tl.load(share + document), 0.0)
            w = tl.where(exists, 1.0, 0.0)
        else:
            b, c, w = couple(logits + row * m, mass + document * m, i, exists, counts)
        total = tl.sum(w, axis=0)
        floored = tl.maximum(total, NEGLIGIBLE)
        x = tl.sum(w[:, None] * u, axis=0) / floored
        v = x * squash_of(x, kappa)[0]
        tl.store(means + row * d + h, x, mask=inside)
        tl.store(totals + row, total)
        if MAY_STOP:
            tl.store(capsules + row * d + h, v, mask=inside)
            tl.store(coupling + row * m + i, c, mask=exists)
        stretch, _, length = stretch_of(u, kappa)
        k = tl.where(exists, kernel_of(u, v, stretch, length), 0.0)
        tl.store(agreed + row, tl.where(counts, tl.sum(w * k, axis=0) / floored, 0.0))
        if not LAST:
            tl.store(next_logits + row * m + i, signed_logits(b + alpha * k, k), mask=exists)


@triton.jit(do_not_specialize=["n", "iteration"])
def settle(
    valid,
    logits,  # b of the next iteration
    agreed,
    running,
    mass,  # (B, m) out: of the next iteration
    agreement,  # (B, T) out
    still_running,  # (B,) out
    used,  # (B,) out
    iteration,
    most,
    n,
    leak,
    epsilon,
    HAS_VALID: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    m: tl.constexpr,
    I: tl.constexpr,  # noqa: E741
    J: tl.constexpr,
):
    """Sum over the outputs of a document, for some inputs, and stop it if its agreement has settled."""
    document = tl.program_id(1).to(tl.int64)
    runs = True
    if not FIRST:
        runs = tl.load(running + document) != 0
    if runs:
        i, j = tl.program_id(0) * I + tl.arange(0, I), tl.arange(0, J)
        scores, sums = tl.zeros((J,), tl.float32), tl.zeros((J, I), tl.float32)
        start = 0
        while start < n:
            exists = start + j < n
            row = document * n + start + j
            scores += tl.load(agreed + row, mask=exists, other=0)
            if not LAST:
                counts = exists
                if HAS_VALID:
                    counts = exists & (tl.load(valid + row, mask=exists, other=0) != 0)
                read = counts[:, None] & (i < m)[None, :]
                b = tl.abs(tl.load(logits + row[:, None] * m + i[None, :], mask=read, other=0))
                sums += tl.where(read, tl.exp(b), 0.0)
            start += J
        if not LAST:
            tl.store(mass + document * m + i, tl.sum(sums, axis=0) + leak, mask=i < m)
        if tl.program_id(0) == 0:
            score = tl.log(tl.maximum(tl.sum(scores, axis=0), 0.0) + TINY)
            tl.store(agreement + document * most + iteration, score)
            tl.store(used + document, iteration + 1)
            if FIRST:
                tl.store(still_running + document, 1)
            else:
                before = tl.load(agreement + document * most + iteration - 1)
                tl.store(still_running + document, tl.where(tl.abs(score - before) < epsilon, 0, 1))
    elif tl.program_id(0) == 0:
        tl.store(agreement + document * most + iteration, float("nan"))
        tl.store(still_running + document, 0)
