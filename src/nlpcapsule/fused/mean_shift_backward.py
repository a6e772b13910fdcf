"""Triton kernels of the gradients of mean shift routing. `one_output` explains the letters."""

import triton
import triton.language as tl

from nlpcapsule.fused.one_output import NEGLIGIBLE, TINY, couple, kernel_of, squash_of, stretch_of


@triton.jit
def through_mean(
    u,
    b,
    x,
    stretch,
    length,
    g_logits,  # of b after this iteration, less the sum over outputs
    g_sum,  # (m,) that sum
    next_mass,  # (m,)
    g_capsule,  # of the last iteration's v
    i,
    exists,
    counts,
    h,
    inside,
    goes_on,
    kappa,
    alpha,
):
    """Return the gradients of the logits after an iteration, of its kernel (M,), and of its mean x (D,)."""
    factor, squared = squash_of(x, kappa)
    v = x * factor
    k = kernel_of(u, v, stretch, length)
    # The softmax that follows: g_b = … + c (g_c - Σ_j g_c c), of which the sum is still missing.
    read = exists & goes_on
    c_next = tl.exp(b + alpha * k) / tl.load(next_mass + i, mask=read, other=1)
    missing = tl.where(read & counts, c_next * tl.load(g_sum + i, mask=read, other=0), 0.0)
    g_b = tl.load(g_logits + i, mask=read, other=0) - missing
    g_k = tl.where(exists & (k > 0), alpha * g_b, 0.0)
    g_v = tl.load(g_capsule + h, mask=inside & (goes_on == 0), other=0)
    g_v += tl.sum((2 * stretch * g_k)[:, None] * u, axis=0) - 2 * tl.sum(g_k, axis=0) * v
    slope = (kappa - squared) / ((kappa + squared) * (kappa + squared))  # of the factor, times ‖x‖
    along = tl.sum(x * g_v, axis=0) * slope / tl.maximum(tl.sqrt(squared), TINY)
    return g_b, g_k, factor * g_v + x * tl.where(squared > 0, along, 0.0)


@triton.jit(do_not_specialize=["n", "iteration"])
def iterate_back(
    votes,
    valid,
    logits,
    mass,
    next_mass,
    means,
    totals,
    used,
    g_capsules,
    g_logits,
    g_sum,
    g_before,  # out: of b before the iteration, less the sum over outputs
    g_softmax,  # out: the terms of that sum
    g_kernel,  # out
    fraction,  # out: w / Σ_i w
    g_means,  # out
    by_document,
    by_input,
    by_output,
    iteration,
    n,
    kappa,
    alpha,
    HAS_VALID: tl.constexpr,
    m: tl.constexpr,
    d: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
):
    """Run a later iteration backwards: gradients of its kernel, its mean and the logits before it."""
    document, j = tl.program_id(1).to(tl.int64), tl.program_id(0)
    last = tl.load(used + document) - 1
    if iteration <= last:
        row = document * n + j
        counts = True
        if HAS_VALID:
            counts = tl.load(valid + row) != 0
        i, h = tl.arange(0, M), tl.arange(0, D)
        exists, inside = i < m, h < d
        places = document * by_document + j * by_output + i[:, None] * by_input + h[None, :]
        u = tl.load(votes + places, mask=exists[:, None] & inside[None, :], other=0).to(tl.float32)
        x = tl.load(means + row * d + h, mask=inside, other=0)
        total = tl.load(totals + row)
        b, _, w = couple(logits + row * m, mass + document * m, i, exists, counts)
        stretch, _, length = stretch_of(u, kappa)
        g_b, g_k, g_x = through_mean(
            u,
            b,
            x,
            stretch,
            length,
            g_logits + row * m,
            g_sum + document * m,
            next_mass + document * m,
            g_capsules + row * d,
            i,
            exists,
            counts,
            h,
            inside,
            iteration < last,
            kappa,
            alpha,
        )
        share = w / tl.maximum(total, NEGLIGIBLE)
        of_total = tl.where(total > NEGLIGIBLE, tl.sum(g_x * x, axis=0), 0.0)
        g_c = share * (tl.sum(u * g_x[None, :], axis=1) - of_total)
        pairs = row * m + i
        tl.store(g_before + pairs, g_b + g_c, mask=exists)
        tl.store(g_softmax + pairs, g_c, mask=exists)
        tl.store(g_kernel + pairs, g_k.to(g_kernel.dtype.element_ty), mask=exists)
        tl.store(fraction + pairs, share.to(fraction.dtype.element_ty), mask=exists)
        tl.store(g_means + row * d + h, g_x, mask=inside)


@triton.jit(do_not_specialize=["n"])
def sum_outputs(
    terms,  # (B, n, m)
    sums,  # (B, m) out
    n,
    m: tl.constexpr,
    I: tl.constexpr,  # noqa: E741
    J: tl.constexpr,
):
    """Sum over the outputs of a document, for some inputs."""
    document = tl.program_id(1).to(tl.int64)
    i, j = tl.program_id(0) * I + tl.arange(0, I), tl.arange(0, J)
    total = tl.zeros((J, I), tl.float32)
    start = 0
    while start < n:
        row = document * n + start + j
        exists = (start + j < n)[:, None] & (i < m)[None, :]
        total += tl.load(terms + row[:, None] * m + i[None, :], mask=exists, other=0)
        start += J
    tl.store(sums + document * m + i, tl.sum(total, axis=0), mask=i < m)


@triton.jit(do_not_specialize=["documents", "n"])
def vote_gradients(
    votes,
    valid,
    next_mass,
    used,
    g_capsules,
    g_logits,
    g_sum,
    means,  # (T, B, n, d)
    g_means,  # (T - 1, B, n, d) of all iterations but the first, as what follows
    g_kernel,  # (T - 1, B, n, m)
    fraction,  # (T - 1, B, n, m)
    g_votes,  # out, of the votes' strides
    by_document,
    by_input,
    by_output,
    documents,
    n,
    kappa,
    alpha,
    HAS_VALID: tl.constexpr,
    m: tl.constexpr,
    d: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
):
    """Run the first iteration backwards; add what all give the votes: by v, the mean and their lengths."""
    document, j = tl.program_id(1).to(tl.int64), tl.program_id(0)
    row = document * n + j
    counts = True
    if HAS_VALID:
        counts = tl.load(valid + row) != 0
    i, h = tl.arange(0, M), tl.arange(0, D)
    exists, inside = i < m, h < d
    places = document * by_document + j * by_output + i[:, None] * by_input + h[None, :]
    u = tl.load(votes + places, mask=exists[:, None] & inside[None, :], other=0).to(tl.float32)
    stretch, squared, length = stretch_of(u, kappa)
    below = kappa + squared
    of_zero = -2 * (squared / below) * kappa / (below * below)  # d (1 - ‖squash(û)‖²) / d ‖û‖²
    of_stretch = tl.where(squared > TINY, (kappa - squared) / (length * below * below), 0.0)  # d 2s / d ‖û‖²
    ran = tl.load(used + document)
    x = tl.load(means + row * d + h, mask=inside, other=0)
    _, g_k, g_x = through_mean(
        u,
        tl.zeros((M,), tl.float32),
        x,
        stretch,
        length,
        g_logits + row * m,
        g_sum + document * m,
        next_mass + document * m,
        g_capsules + row * d,
        i,
        exists,
        counts,
        h,
        inside,
        ran > 1,
        kappa,
        alpha,
    )
    v = x * squash_of(x, kappa)[0]
    g_u = (2 * stretch * g_k)[:, None] * v[None, :] + (g_x / m)[None, :]
    g_squared = g_k * (of_zero + of_stretch * tl.sum(u * v[None, :], axis=1))
    while ran > 1:  # the other iterations
        means += documents * n * d
        x = tl.load(means + row * d + h, mask=inside, other=0)
        g_x = tl.load(g_means + row * d + h, mask=inside, other=0)
        g_k = tl.load(g_kernel + row * m + i, mask=exists, other=0).to(tl.float32)
        w = tl.load(fraction + row * m + i, mask=exists, other=0).to(tl.float32)
        v = x * squash_of(x, kappa)[0]
        g_u += (2 * stretch * g_k)[:, None] * v[None, :] + w[:, None] * g_x[None, :]
        g_squared += g_k * (of_zero + of_stretch * tl.sum(u * v[None, :], axis=1))
        g_means += documents * n * d
        g_kernel += documents * n * m
        fraction += documents * n * m
        ran -= 1
    g_u += (2 * g_squared)[:, None] * u
    written = exists[:, None] & inside[None, :]
    tl.store(g_votes + places, g_u.to(g_votes.dtype.element_ty), mask=written)
