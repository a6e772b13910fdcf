"""Triton kernels that form votes û_{j|i} = W_ij u_i from the rows of a table, and their gradients.

A program takes one input i and J outputs: a product (documents, D) × (D, J·D). Letters are those of
`one_output`; the columns (j, h) of a tile are numbered in one go.
"""

import triton
import triton.language as tl


@triton.jit
def load_transforms(table, ids, column, i, n, width, d: tl.constexpr, D: tl.constexpr):
    """Return W_ij (D, J·D) of an input, by column (j, h), and which columns exist."""
    j, h, k = column // D, column % D, tl.arange(0, D)
    exists = (j < n) & (h < d)
    row = tl.load(ids + j, mask=j < n, other=0)
    places = (row * width + i * d * d + h * d)[None, :] + k[:, None]
    return tl.load(table + places, mask=exists[None, :] & (k < d)[:, None], other=0), exists


@triton.jit
def load_inputs(capsules, document, documents, i, by_document, by_input, d: tl.constexpr, D: tl.constexpr):
    """Return u_i (documents, D)."""
    k = tl.arange(0, D)
    places = document[:, None] * by_document + i * by_input + k[None, :]
    return tl.load(capsules + places, mask=(document < documents)[:, None] & (k < d)[None, :], other=0)


@triton.jit(do_not_specialize=["documents", "n"])
def form(
    capsules,  # (B, m, d)
    table,  # (labels, m·d·d)
    ids,  # (n,)
    votes,  # (B, n, m, d) out
    by_document,
    by_input,
    documents,
    n,
    width,
    m: tl.constexpr,
    d: tl.constexpr,
    J: tl.constexpr,
    D: tl.constexpr,
    DOCUMENTS: tl.constexpr,  # at a time
):
    """Form the votes of an input for some outputs."""
    i = tl.program_id(0)
    column = tl.program_id(1) * J * D + tl.arange(0, J * D)
    w, exists = load_transforms(table, ids, column, i, n, width, d, D)
    kind = votes.dtype.element_ty
    target = ((column // D) * m + i) * d + column % D
    start = 0
    while start < documents:
        document = start + tl.arange(0, DOCUMENTS)
        u = load_inputs(capsules, document, documents, i, by_document, by_input, d, D)
        found = tl.dot(u.to(kind), w.to(kind), input_precision="ieee")
        places = document[:, None] * (n * m * d) + target[None, :]
        tl.store(votes + places, found.to(kind), mask=(document < documents)[:, None] & exists[None, :])
        start += DOCUMENTS


@triton.jit(do_not_specialize=["documents", "n"])
def form_back(
    capsules,
    table,
    ids,
    g_votes,  # (B, n, m, d)
    g_rows,  # (n, m·d·d) out
    part_of_g_capsules,  # (tiles, B, m, d) out
    by_document,
    by_input,
    documents,
    n,
    width,
    m: tl.constexpr,
    d: tl.constexpr,
    J: tl.constexpr,
    D: tl.constexpr,
    DOCUMENTS: tl.constexpr,
):
    """Compute the gradients of W_ij of an input and some outputs, and their part of that of u_i."""
    i, k = tl.program_id(0), tl.arange(0, D)
    column = tl.program_id(1) * J * D + tl.arange(0, J * D)
    w, exists = load_transforms(table, ids, column, i, n, width, d, D)
    kind = g_votes.dtype.element_ty
    source = ((column // D) * m + i) * d + column % D
    g_w = tl.zeros((J * D, D), tl.float32)
    start = 0
    while start < documents:
        document = start + tl.arange(0, DOCUMENTS)
        there = document < documents
        u = load_inputs(capsules, document, documents, i, by_document, by_input, d, D)
        places = document[:, None] * (n * m * d) + source[None, :]
        g = tl.load(g_votes + places, mask=there[:, None] & exists[None, :], other=0)
        g_w = tl.dot(tl.trans(g), u.to(kind), g_w, input_precision="ieee")
        g_u = tl.dot(g, tl.trans(w.to(kind)), input_precision="ieee")
        row = tl.program_id(1) * documents + document
        places = (row[:, None] * m + i) * d + k[None, :]
        tl.store(part_of_g_capsules + places, g_u, mask=there[:, None] & (k < d)[None, :])
        start += DOCUMENTS
    target = (column // D) * width + i * d * d + (column % D) * d
    tl.store(g_rows + target[:, None] + k[None, :], g_w, mask=exists[:, None] & (k < d)[None, :])
