"""What the Triton kernels of mean shift routing share, forward and backward; `mean_shift` launches them.

A program routes one document to J outputs, I inputs at a time: a tile (I, J, D) of votes û. What ties the
outputs of a document together are two sums over all of them, Σ_j exp(b_ij) of the softmax and its counterpart
in the backward pass: programs write their parts, and `settle` (backward: torch) adds these in a fixed order,
so that results repeat. A program of a document that has stopped ends at once.

Letters: i input of m, j output of n, h of d; b logits, c couplings, s support, w = c s, x the mean of votes,
v = squash(x), k the kernel's value, g_… a gradient. Places are those of (B, m, n), (B, n, d) and (B, n).
"""

import triton
import triton.language as tl

TINY: tl.constexpr = tl.constexpr(1.1754943508222875e-38)
NEGLIGIBLE: tl.constexpr = tl.constexpr(1e-12)


@triton.jit
def load_votes(votes, i, j, h, by_input, by_output, inside):
    """Return û (I, J, D) of a document, zero outside."""
    places = i[:, None, None] * by_input + j[None, :, None] * by_output + h[None, None, :]
    return tl.load(votes + places, mask=inside, other=0).to(tl.float32)


@triton.jit
def squash_of(x, kappa):
    """Return ‖x‖ / (κ + ‖x‖²) (J,), the factor that squashes x, and ‖x‖²."""
    squared = tl.sum(x * x, axis=1)
    return tl.sqrt(squared) / (kappa + squared), squared


@triton.jit
def kernel_of(u, v, kappa):
    """Return max(0, 1 - ‖squash(û) - v‖²) (I, J), and the stretch s of squash(û) = s û."""
    squared = tl.sum(u * u, axis=2)
    length = tl.sqrt(tl.maximum(squared, TINY))
    stretch = length / (kappa + squared)
    squashed = stretch * length
    dot = tl.sum(u * v[None, :, :], axis=2)
    value = (1 - squashed * squashed) + 2 * stretch * dot - tl.sum(v * v, axis=1)[None, :]
    return tl.maximum(value, 0.0), stretch


@triton.jit
def couple(logits, mass, within, near, pairs, i, m, real):
    """Return b, c and s (I, J)."""
    b = tl.load(logits + pairs, mask=real, other=0)
    z = tl.load(mass + i, mask=i < m, other=1)
    c = tl.where(real, tl.exp(b) / z[:, None], 0.0)
    support = tl.load(within + pairs, mask=real, other=0).to(tl.float32)
    return b, c, tl.where(near[None, :] == 0, 1.0, support)


@triton.jit
def outputs_of(valid, document, n, J: tl.constexpr, HAS_VALID: tl.constexpr):
    """Return the outputs j of this program, and which of them count: those that are not padding."""
    j = tl.program_id(1) * J + tl.arange(0, J)
    counts = j < n
    if HAS_VALID:
        counts = counts & (tl.load(valid + document * n + j, mask=j < n, other=0) != 0)
    return j, counts
