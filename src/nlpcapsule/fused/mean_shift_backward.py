"""Triton kernels of the gradients of mean shift routing. `tiles` explains names and letters."""

import triton
import triton.language as tl

from nlpcapsule.fused.tiles import NEGLIGIBLE, TINY, couple, kernel_of, load_votes, outputs_of, squash_of


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
        j, counts = outputs_of(valid, document, n, J, HAS_VALID)
        h = tl.arange(0, D)
        votes += document * by_document
        mass += document * m
        around = tl.load(near + document * n + j, mask=j < n, other=0)
        place = (document * n + j)[:, None] * d + h[None, :]
        inside = (j < n)[:, None] & (h < d)[None, :]
        x = tl.load(means + place, mask=inside, other=0)
        total = tl.load(totals + document * n + j, mask=j < n, other=0)
        floored = tl.maximum(total, NEGLIGIBLE)
        factor, squared = squash_of(x, kappa)
        v = x * factor[:, None]
        sums = tl.zeros((I, J, D), tl.float32)
        g_all = tl.zeros((I, J), tl.float32)
        for start in tl.range(0, m, I, num_stages=STAGES):
            i = start + tl.arange(0, I)
            exists = (i < m)[:, None] & (j < n)[None, :]
            u = load_votes(votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :])
            pairs = (document * m + i)[:, None] * n + j[None, :]
            value, stretch = kernel_of(u, v, kappa)
            if FIRST:
                b = tl.zeros((I, J), tl.float32)
                w = tl.where(exists, 1.0, 0.0)
            else:
                b, c, s = couple(logits, mass, within, around, pairs, i, m, exists & counts[None, :])
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
        along = tl.sum(x * g_v, axis=1) * slope / tl.maximum(tl.sqrt(squared), TINY)
        g_x = factor[:, None] * g_v + x * tl.where(squared > 0, along, 0.0)[:, None]
        tl.store(g_means + place, g_x, mask=inside)
        if not FIRST:
            of_total = tl.where(total > NEGLIGIBLE, tl.sum(g_x * x, axis=1), 0.0)
            tile = document * tl.num_programs(1) + tl.program_id(1)
            tl.debug_barrier()  # g_before is read again, by other threads than those that wrote it
            for start in tl.range(0, m, I, num_stages=STAGES):
                i = start + tl.arange(0, I)
                exists = (i < m)[:, None] & (j < n)[None, :]
                u = load_votes(
                    votes, i, j, h, by_input, by_output, exists[:, :, None] & (h < d)[None, None, :]
                )
                pairs = (document * m + i)[:, None] * n + j[None, :]
                _, c, s = couple(logits, mass, within, around, pairs, i, m, exists & counts[None, :])
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
    u = load_votes(votes + document * by_document, i, j, h, by_input, by_output, within)
    pairs = (document * m + i)[:, None] * n + j[None, :]
    place = (document * n + j)[:, None] * d + h[None, :]
    inside = (j < n)[:, None] & (h < d)[None, :]
    squared = tl.sum(u * u, axis=2)
    length = tl.sqrt(tl.maximum(squared, TINY))
    below = kappa + squared
    of_zero = -2 * (squared / below) * kappa / (below * below)  # d (1 - ‖squash(û)‖²) / d ‖û‖²
    of_stretch = tl.where(squared > TINY, (kappa - squared) / (length * below * below), 0.0)  # d 2s / d ‖û‖²
    g_squared = tl.zeros((I, J), tl.float32)
    g_u = tl.zeros((I, J, D), tl.float32)
    ran = tl.load(used + document)
    for iteration in range(MOST):
        if iteration < ran:
            x = tl.load(means + place, mask=inside, other=0)
            v = x * squash_of(x, kappa)[0][:, None]
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
