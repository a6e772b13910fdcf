"""Triton kernels of mean shift routing: an iteration, and its end. `tiles` explains names and letters."""

import triton
import triton.language as tl

from nlpcapsule.fused.tiles import NEGLIGIBLE, TINY, couple, kernel_of, load_votes, outputs_of, squash_of


@triton.jit(do_not_specialize=["n"])
def iterate(
    votes,
    valid,
    share,  # (B,) the coupling of the first iteration
    logits,  # b
    within,  # 1 where k > 0 in the iteration before
    near,  # (B, n) how many of them
    mass,  # (B, m) Σ_j exp(b), with the leak
    running,  # (B,)
    next_logits,
    next_within,
    next_near,
    means,  # out: x
    totals,  # out: Σ_i w
    part_of_mass,  # (B, tiles, m)
    part_of_agreement,  # (B, tiles)
    capsules,  # out: v
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
    m: tl.constexpr,
    d: tl.constexpr,
    I: tl.constexpr,  # noqa: E741
    J: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Run an iteration of a document for some outputs."""
    document = tl.program_id(0).to(tl.int64)
    if tl.load(running + document) != 0:
        j, counts = outputs_of(valid, document, n, J, HAS_VALID)
        h = tl.arange(0, D)
        votes += document * by_document
        mass += document * m
        around = tl.load(near + document * n + j, mask=j < n, other=0)
        sums = tl.zeros((I, J, D), tl.float32)
        weighed = tl.zeros((I, J), tl.float32)
        for start in tl.range(0, m, I, num_stages=STAGES):
            i = start + tl.arange(0, I)
            exists = (i < m)[:, None] & (j < n)[None, :]
            u = load_votes(votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :])
            if FIRST:  # all votes weigh the same
                w = tl.where(exists, 1.0, 0.0)
            else:
                pairs = (document * m + i)[:, None] * n + j[None, :]
                _, c, s = couple(logits, mass, within, around, pairs, i, m, exists & counts[None, :])
                w = c * s
            sums += w[:, :, None] * u
            weighed += w
        total = tl.sum(weighed, axis=0)
        x = tl.sum(sums, axis=0) / tl.maximum(total, NEGLIGIBLE)[:, None]
        v = x * squash_of(x, kappa)[0][:, None]
        place = (document * n + j)[:, None] * d + h[None, :]
        inside = (j < n)[:, None] & (h < d)[None, :]
        tl.store(means + place, x, mask=inside)
        tl.store(totals + document * n + j, total, mask=j < n)
        tl.store(capsules + place, v, mask=inside)
        tile = document * tl.num_programs(1) + tl.program_id(1)
        agreed = tl.zeros((I, J), tl.float32)
        found = tl.zeros((I, J), tl.int32)
        for start in tl.range(0, m, I, num_stages=STAGES):
            i = start + tl.arange(0, I)
            exists = (i < m)[:, None] & (j < n)[None, :]
            real = exists & counts[None, :]
            u = load_votes(votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :])
            pairs = (document * m + i)[:, None] * n + j[None, :]
            value = tl.where(exists, kernel_of(u, v, kappa)[0], 0.0)
            if FIRST:
                b = tl.zeros((I, J), tl.float32)
                c = tl.where(real, tl.load(share + document), 0.0)
                w = tl.where(exists, 1.0, 0.0)
            else:
                b, c, s = couple(logits, mass, within, around, pairs, i, m, real)
                w = c * s
            tl.store(coupling + pairs, c, mask=exists)
            agreed += w * value
            if not LAST:
                b += alpha * value
                tl.store(next_logits + pairs, b, mask=exists)
                tl.store(next_within + pairs, (value > 0).to(tl.int8), mask=exists)
                found += (value > 0).to(tl.int32)
                part = tl.sum(tl.where(real, tl.exp(b), 0.0), axis=1)
                tl.store(part_of_mass + tile * m + i, part, mask=i < m)
        if not LAST:
            tl.store(next_near + document * n + j, tl.sum(found, axis=0), mask=j < n)
        scores = tl.sum(agreed, axis=0) / tl.maximum(total, NEGLIGIBLE)
        tl.store(part_of_agreement + tile, tl.sum(tl.where(counts, scores, 0.0), axis=0))


@triton.jit(do_not_specialize=["iteration", "tiles"])
def settle(
    part_of_mass,
    part_of_agreement,
    mass,  # (B, m) of the next iteration
    agreement,  # (B, T)
    running,
    used,  # (B,)
    iteration,
    most,
    tiles,
    leak,
    epsilon,
    m: tl.constexpr,
    M: tl.constexpr,
    TILES: tl.constexpr,
):
    """Add the tiles' parts of a document, and stop it if its agreement has settled."""
    document = tl.program_id(0).to(tl.int64)
    if tl.load(running + document) != 0:
        i, some = tl.arange(0, M), tl.arange(0, TILES)
        agreed, total = tl.zeros((TILES,), tl.float32), tl.zeros((TILES, M), tl.float32)
        start = 0
        while start < tiles:
            tile = document * tiles + start + some
            exists = start + some < tiles
            agreed += tl.load(part_of_agreement + tile, mask=exists, other=0)
            places = tile[:, None] * m + i[None, :]
            total += tl.load(part_of_mass + places, mask=exists[:, None] & (i < m)[None, :], other=0)
            start += TILES
        tl.store(mass + document * m + i, tl.sum(total, axis=0) + leak, mask=i < m)
        score = tl.log(tl.maximum(tl.sum(agreed, axis=0), 0.0) + TINY)
        tl.store(agreement + document * most + iteration, score)
        tl.store(used + document, iteration + 1)
        if iteration > 0:
            before = tl.load(agreement + document * most + iteration - 1)
            if tl.abs(score - before) < epsilon:
                tl.store(running + document, 0)
