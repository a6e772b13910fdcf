"""What the Triton kernels of mean shift routing share, forward and backward; `mean_shift` launches them.

A program routes one document to one output and holds all its votes û, (M, D), so that an iteration reads
every vote once. What ties the outputs of a document together are two sums over all of them, Σ_j exp(b_ij) of
the softmax and its counterpart in the backward pass: programs write their parts, and `settle` (backward:
`sum_outputs`) adds these in a fixed order, so that results repeat. A program of a document that has stopped
ends at once.

Letters: i input of m, j output of n, h of d; M and D are the powers of two above m and d; b logits, c
couplings, s support, w = c s, x the mean of votes, v = squash(x), k the kernel's value, g_… a gradient. All
pairs of inputs and outputs are stored as (B, n, m), output by output. Logits are never negative: one is
stored with a minus sign where k = 0, outside of the support.
"""

import triton
import triton.language as tl

TINY: tl.constexpr = tl.constexpr(1.1754943508222875e-38)
NEGLIGIBLE: tl.constexpr = tl.constexpr(1e-12)


@triton.jit
def squash_of(x, kappa):
    """Return ‖x‖ / (κ + ‖x‖²), the factor that squashes x (D,), and ‖x‖²."""
    squared = tl.sum(x * x, axis=0)
    return tl.sqrt(squared) / (kappa + squared), squared


@triton.jit
def stretch_of(u, kappa):
    """Return s of squash(û) = s û, ‖û‖² and ‖û‖ (M,)."""
    squared = tl.sum(u * u, axis=1)
    length = tl.sqrt(tl.maximum(squared, TINY))
    return length / (kappa + squared), squared, length


@triton.jit
def kernel_of(u, v, stretch, length):
    """Return k = max(0, 1 - ‖squash(û) - v‖²) (M,)."""
    squashed = stretch * length
    dot = tl.sum(u * v[None, :], axis=1)
    return tl.maximum((1 - squashed * squashed) + 2 * stretch * dot - tl.sum(v * v, axis=0), 0.0)


@triton.jit
def signed_logits(b, k):
    """Return logits b with a minus sign where k = 0."""
    return tl.where(k > 0, b, -tl.maximum(b, TINY))


@triton.jit
def couple(logits, mass, i, exists, counts):
    """Return b, c and w = c s (M,); the support s is everything where no vote is inside."""
    signed = tl.load(logits + i, mask=exists, other=-1)
    b = tl.abs(signed)
    c = tl.where(exists & counts, tl.exp(b) / tl.load(mass + i, mask=exists, other=1), 0.0)
    inside = tl.where(signed > 0, 1.0, 0.0)
    return b, c, tl.where(tl.sum(inside, axis=0) == 0, c, c * inside)
