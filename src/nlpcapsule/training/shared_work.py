"""Processes that share one training: who they are, and how they exchange arrays.

torchrun, or `accelerate launch` with GPUs, starts them. Each reads a share of every batch. The first one, the
main process, alone fits lexical systems and writes; the others wait and receive what it found.
"""

import os
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather, pad_across_processes, parse_flag_from_env
from torch import distributed

from nlpcapsule.data.growing_array import GrowingArray

_PATIENCE = timedelta(days=2)  # the others wait while the main process fits a lexical system
_SENT = 2**26  # bytes of an array that are sent at once


def this_process() -> PartialState:
    """Return this process's place among those that share the training; the first call connects them.

    They connect through NCCL where there are GPUs, otherwise through gloo. Accelerate keeps what its first
    state was initialised with, so nothing else may create one.
    """
    is_one_of_several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    is_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or (
        is_one_of_several and not torch.cuda.is_available()
    )
    return PartialState(cpu=is_cpu, timeout=_PATIENCE)


def share_of(rows: np.ndarray) -> np.ndarray:
    """Return this process's part of some rows: every n-th one of n processes."""
    process = this_process()
    return rows[process.process_index :: process.num_processes]


def joined_shares(part: np.ndarray, count: int) -> np.ndarray:
    """Return all (count, K) rows of an integer array, given the part (N', K) that `share_of` has assigned."""
    process = this_process()
    if process.num_processes == 1:
        return part
    own = pad_across_processes(torch.from_numpy(part.astype(np.int64)).to(process.device))
    parts = gather(own).view(process.num_processes, *own.shape)  # (processes, N', K)
    return parts.transpose(0, 1).flatten(0, 1)[:count].cpu().numpy()


def array_of_main(array: np.ndarray | None) -> np.ndarray | None:
    """Return the main process's integer array (N, C), or None; others keep a large one in a file."""
    process = this_process()
    if process.num_processes == 1:
        return array
    array = array if process.is_main_process else None
    facts = value_of_main(None if array is None else (array.shape, array.dtype.str))
    if facts is None:
        return None
    (count, width), kind = facts
    rows, received = max(1, _SENT // max(1, 8 * width)), GrowingArray(np.dtype(kind).type)
    for start in range(0, count, rows):
        part = np.empty((min(rows, count - start), width), kind)
        if array is not None:
            part[:] = array[start : start + rows]
        sent = torch.from_numpy(part).to(process.device)
        distributed.broadcast(sent, 0)
        if array is None:
            received.append(sent.cpu().numpy())
    return received.array().reshape(count, width) if array is None else array


def value_of_main(value: Any) -> Any:
    """Return the main process's value, such as a folder's name or metrics, so that all decide alike."""
    told = [value]
    if this_process().num_processes > 1:
        broadcast_object_list(told)
    return told[0]
