"""Triton kernels of mean shift routing, forward and backward; `mean_shift` launches them.

A program routes one document to J outputs, I inputs at a time: a tile (I, J, D) of votes û. What ties the
outputs of a document together are two sums over all of them, Σ_j exp(b_ij) of the softmax and its counterpart
in the backward pass: programs write their parts, and `settle` (backward: torch) adds these in a fixed order,
so that results repeat. A program of a document that has stopped ends at once.

Letters: i input of m, j output of n, h of d; b logits, c couplings, s support, w = c s, x the mean of votes,
v = squash(x), k the kernel's value, g_… a gradient. Places are those of (B, m, n), (B, n, d) and (B, n).
"""

import triton
import triton.language as tl

_TINY: tl.constexpr = tl.constexpr(1.1754943508222875e-38)
_NEGLIGIBLE: tl.constexpr = tl.constexpr(1e-12)


@triton.jit
def _load_votes(votes, i, j, h, by_input, by_output, inside):
    """Return û (I, J, D) of a document, zero outside."""
    places = i[:, None, None] * by_input + j[None, :, None] * by_output + h[None, None, :]
    return tl.load(votes + places, mask=inside, other=0).to(tl.float32)


@triton.jit
def _squash_of(x, kappa):
    """Return ‖x‖ / (κ + ‖x‖²) (J,), the factor that squashes x, and ‖x‖²."""
    squared = tl.sum(x * x, axis=1)
    return tl.sqrt(squared) / (kappa + squared), squared


@triton.jit
def _kernel(u, v, kappa):
    """Return max(0, 1 - ‖squash(û) - v‖²) (I, J), and the stretch s of squash(û) = s û."""
    squared = tl.sum(u * u, axis=2)
    length = tl.sqrt(tl.maximum(squared, _TINY))
    stretch = length / (kappa + squared)
    squashed = stretch * length
    dot = tl.sum(u * v[None, :, :], axis=2)
    value = (1 - squashed * squashed) + 2 * stretch * dot - tl.sum(v * v, axis=1)[None, :]
    return tl.maximum(value, 0.0), stretch


@triton.jit
def _couple(logits, mass, within, near, pairs, i, m, real):
    """Return b, c and s (I, J)."""
    b = tl.load(logits + pairs, mask=real, other=0)
    z = tl.load(mass + i, mask=i < m, other=1)
    c = tl.where(real, tl.exp(b) / z[:, None], 0.0)
    support = tl.load(within + pairs, mask=real, other=0).to(tl.float32)
    return b, c, tl.where(near[None, :] == 0, 1.0, support)


@triton.jit
def _outputs(valid, document, n, J: tl.constexpr, HAS_VALID: tl.constexpr):
    """Return the outputs j of this program, and which of them count: those that are not padding."""
    j = tl.program_id(1) * J + tl.arange(0, J)
    counts = j < n
    if HAS_VALID:
        counts = counts & (tl.load(valid + document * n + j, mask=j < n, other=0) != 0)
    return j, counts


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
        j, counts = _outputs(valid, document, n, J, HAS_VALID)
        h = tl.arange(0, D)
        votes += document * by_document
        mass += document * m
        around = tl.load(near + document * n + j, mask=j < n, other=0)
        sums = tl.zeros((I, J, D), tl.float32)
        weighed = tl.zeros((I, J), tl.float32)
        for start in tl.range(0, m, I, num_stages=STAGES):
            i = start + tl.arange(0, I)
            exists = (i < m)[:, None] & (j < n)[None, :]
            u = _load_votes(votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :])
            if FIRST:  # all votes weigh the same
                w = tl.where(exists, 1.0, 0.0)
            else:
                pairs = (document * m + i)[:, None] * n + j[None, :]
                _, c, s = _couple(logits, mass, within, around, pairs, i, m, exists & counts[None, :])
                w = c * s
            sums += w[:, :, None] * u
            weighed += w
        total = tl.sum(weighed, axis=0)
        x = tl.sum(sums, axis=0) / tl.maximum(total, _NEGLIGIBLE)[:, None]
        v = x * _squash_of(x, kappa)[0][:, None]
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
            u = _load_votes(votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :])
            pairs = (document * m + i)[:, None] * n + j[None, :]
            value = tl.where(exists, _kernel(u, v, kappa)[0], 0.0)
            if FIRST:
                b = tl.zeros((I, J), tl.float32)
                c = tl.where(real, tl.load(share + document), 0.0)
                w = tl.where(exists, 1.0, 0.0)
            else:
                b, c, s = _couple(logits, mass, within, around, pairs, i, m, real)
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
        scores = tl.sum(agreed, axis=0) / tl.maximum(total, _NEGLIGIBLE)
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
        score = tl.log(tl.maximum(tl.sum(agreed, axis=0), 0.0) + _TINY)
        tl.store(agreement + document * most + iteration, score)
        tl.store(used + document, iteration + 1)
        if iteration > 0:
            before = tl.load(agreement + document * most + iteration - 1)
            if tl.abs(score - before) < epsilon:
                tl.store(running + document, 0)


@triton.jit(do_not_specialize=["n", "iteration"])
def iterate_back(
    votes,
    valid,
    logits,
    within,
    near,
    mass,
    next_mass,
    means,
    totals,
    used,
    g_capsules,  # of the last iteration's v
    g_logits,  # of b after this iteration, less the sum over outputs
    g_before,  # out: of b before it
    g_sum,  # (B, m) that sum
    g_kernel,  # out
    fraction,  # out: w / Σ_i w
    g_means,  # out
    part_of_sum,  # (B, tiles, m) out
    by_document,
    by_input,
    by_output,
    iteration,
    n,
    kappa,
    alpha,
    HAS_VALID: tl.constexpr,
    FIRST: tl.constexpr,
    m: tl.constexpr,
    d: tl.constexpr,
    I: tl.constexpr,  # noqa: E741
    J: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Run an iteration backwards: the gradients of its kernel, its mean and the logits before it."""
    document = tl.program_id(0).to(tl.int64)
    last = tl.load(used + document) - 1
    if iteration <= last:
        goes_on = iteration < last
        j, counts = _outputs(valid, document, n, J, HAS_VALID)
        h = tl.arange(0, D)
        votes += document * by_document
        mass += document * m
        around = tl.load(near + document * n + j, mask=j < n, other=0)
        place = (document * n + j)[:, None] * d + h[None, :]
        inside = (j < n)[:, None] & (h < d)[None, :]
        x = tl.load(means + place, mask=inside, other=0)
        total = tl.load(totals + document * n + j, mask=j < n, other=0)
        floored = tl.maximum(total, _NEGLIGIBLE)
        factor, squared = _squash_of(x, kappa)
        v = x * factor[:, None]
        sums = tl.zeros((I, J, D), tl.float32)
        g_all = tl.zeros((I, J), tl.float32)
        for start in tl.range(0, m, I, num_stages=STAGES):
            i = start + tl.arange(0, I)
            exists = (i < m)[:, None] & (j < n)[None, :]
            u = _load_votes(votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :])
            pairs = (document * m + i)[:, None] * n + j[None, :]
            value, stretch = _kernel(u, v, kappa)
            if FIRST:
                b = tl.zeros((I, J), tl.float32)
                w = tl.where(exists, 1.0, 0.0)
            else:
                b, c, s = _couple(logits, mass, within, around, pairs, i, m, exists & counts[None, :])
                w = c * s
            # The softmax that follows: g_b = … + c (g_c - Σ_j g_c c), of which the sum is still missing.
            following = tl.load(next_mass + document * m + i, mask=i < m, other=1)
            missing = tl.load(g_sum + document * m + i, mask=i < m, other=0)
            c_next = tl.where(exists & counts[None, :], tl.exp(b + alpha * value) / following[:, None], 0.0)
            g_b = tl.load(g_logits + pairs, mask=exists, other=0) - c_next * missing[:, None]
            g_b = tl.where(goes_on, g_b, 0.0)
            g_k = tl.where(exists & (value > 0), alpha * g_b, 0.0)
            sums += (2 * stretch * g_k)[:, :, None] * u
            g_all += g_k
            tl.store(g_kernel + pairs, g_k, mask=exists)
            tl.store(fraction + pairs, w / floored[None, :], mask=exists)
            if not FIRST:
                tl.store(g_before + pairs, g_b, mask=exists)
        g_v = tl.where(goes_on, 0.0, tl.load(g_capsules + place, mask=inside, other=0))
        g_v += tl.sum(sums, axis=0) - 2 * tl.sum(g_all, axis=0)[:, None] * v
        slope = (kappa - squared) / ((kappa + squared) * (kappa + squared))  # of the factor, times ‖x‖
        along = tl.sum(x * g_v, axis=1) * slope / tl.maximum(tl.sqrt(squared), _TINY)
        g_x = factor[:, None] * g_v + x * tl.where(squared > 0, along, 0.0)[:, None]
        tl.store(g_means + place, g_x, mask=inside)
        if not FIRST:
            of_total = tl.where(total > _NEGLIGIBLE, tl.sum(g_x * x, axis=1), 0.0)
            tile = document * tl.num_programs(1) + tl.program_id(1)
            tl.debug_barrier()  # g_before is read again, by other threads than those that wrote it
            for start in tl.range(0, m, I, num_stages=STAGES):
                i = start + tl.arange(0, I)
                exists = (i < m)[:, None] & (j < n)[None, :]
                u = _load_votes(
                    votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :]
                )
                pairs = (document * m + i)[:, None] * n + j[None, :]
                _, c, s = _couple(logits, mass, within, around, pairs, i, m, exists & counts[None, :])
                g_w = (tl.sum(u * g_x[None, :, :], axis=2) - of_total[None, :]) / floored[None, :]
                g_c = c * s * g_w
                g_b = tl.load(g_before + pairs, mask=exists, other=0)
                tl.store(g_before + pairs, g_b + g_c, mask=exists)
                tl.store(part_of_sum + tile * m + i, tl.sum(g_c, axis=1), mask=i < m)


@triton.jit(do_not_specialize=["documents", "n"])
def vote_gradients(
    votes,
    g_votes,  # of the same strides
    used,
    g_kernel,  # (T, B, m, n)
    fraction,  # (T, B, m, n)
    means,  # (T, B, n, d)
    g_means,  # (T, B, n, d)
    by_document,
    by_input,
    by_output,
    documents,
    n,
    kappa,
    MOST: tl.constexpr,
    m: tl.constexpr,
    d: tl.constexpr,
    I: tl.constexpr,  # noqa: E741
    J: tl.constexpr,
    D: tl.constexpr,
):
    """Add what each iteration gives to the gradient of the votes: by v, by the mean, and by their lengths."""
    document = tl.program_id(0).to(tl.int64)
    j, h = tl.program_id(1) * J + tl.arange(0, J), tl.arange(0, D)
    i = tl.program_id(2) * I + tl.arange(0, I)
    exists = (i < m)[:, None] & (j < n)[None, :]
    within = exists[:, :, None] & (h < d)[None, None, :]
    u = _load_votes(votes + document * by_document, i, j, h, by_input, by_output, within)
    pairs = (document * m + i)[:, None] * n + j[None, :]
    place = (document * n + j)[:, None] * d + h[None, :]
    inside = (j < n)[:, None] & (h < d)[None, :]
    squared = tl.sum(u * u, axis=2)
    length = tl.sqrt(tl.maximum(squared, _TINY))
    below = kappa + squared
    of_zero = -2 * (squared / below) * kappa / (below * below)  # d (1 - ‖squash(û)‖²) / d ‖û‖²
    of_stretch = tl.where(squared > _TINY, (kappa - squared) / (length * below * below), 0.0)  # d 2s / d ‖û‖²
    g_squared = tl.zeros((I, J), tl.float32)
    g_u = tl.zeros((I, J, D), tl.float32)
    ran = tl.load(used + document)
    for iteration in range(MOST):
        if iteration < ran:
            x = tl.load(means + place, mask=inside, other=0)
            v = x * _squash_of(x, kappa)[0][:, None]
            g_x = tl.load(g_means + place, mask=inside, other=0)
            g_k = tl.load(g_kernel + pairs, mask=exists, other=0)
            w = tl.load(fraction + pairs, mask=exists, other=0)
            g_u += (2 * (length / below) * g_k)[:, :, None] * v[None, :, :] + w[:, :, None] * g_x[None, :, :]
            g_squared += g_k * (of_zero + of_stretch * tl.sum(u * v[None, :, :], axis=2))
        pairs += documents * m * n
        place += documents * n * d
    g_u += (2 * g_squared)[:, :, None] * u
    target = i[:, None, None] * by_input + j[None, :, None] * by_output + h[None, None, :]
    tl.store(g_votes + document * by_document + target, g_u.to(g_votes.dtype.element_ty), mask=within)
