"""The Triton kernel of `RowAdam`: a row's gradient, state and weights are read once."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rate"])
def update(
    table,  # (n, width)
    squares,  # (n, width) v
    rows,  # (r,)
    gradients,  # (r, width) g
    width,
    rate,  # of this step, with the correction of v
    new,  # 1 - β₂
    epsilon,
    BLOCK: tl.constexpr,
):
    """v_r ← β₂ v_r + (1 - β₂) g_r²;   x_r ← x_r - rate g_r / (√v_r + ε), for one row and some columns."""
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    exists = column < width
    place = tl.load(rows + tl.program_id(0)).to(tl.int64) * width + column
    g = tl.load(gradients + tl.program_id(0).to(tl.int64) * width + column, mask=exists, other=0)
    v = tl.load(squares + place, mask=exists, other=0)
    v += (g * g - v) * new
    tl.store(squares + place, v, mask=exists)
    x = tl.load(table + place, mask=exists, other=0)
    tl.store(table + place, x - rate * g / (tl.sqrt(v) + epsilon), mask=exists)
