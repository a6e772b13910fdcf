"""Order documents into batches as a function of seed and epoch, so that resumed runs repeat it."""

import numpy as np

_POOL = 32  # batches sorted by length together: little padding, but still well shuffled


def batch_rows(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int, shuffle: bool = True
) -> list[np.ndarray]:
    """Split rows, of `lengths` (N,) tokens, into batches of similar length; the last batch may be smaller.

    Without `shuffle` every epoch has the data's order.
    """
    rows = np.arange(len(lengths))
    if not shuffle:
        return [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    generator = np.random.default_rng([seed, epoch])
    generator.shuffle(rows)
    batches = []
    for start in range(0, len(rows), batch_size * _POOL):
        pool = rows[start : start + batch_size * _POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[begin : begin + batch_size] for begin in range(0, len(pool), batch_size)]
    return [batches[index] for index in generator.permutation(len(batches))]
