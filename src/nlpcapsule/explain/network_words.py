"""Trace labels through a network: the gradient at each token, and the way through capsules."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.scoring.network_scorer import device_of


@dataclass(frozen=True)
class NetworkTrace:
    """How L labels of one document came about in the network.

    Attributes:
        gradient: (L, T) gradient times input of each token, a first-order estimate of its effect; None where
            tokens do not have one vector each.
        coupling: (L, m) weight of each capsule in each label's capsule; None where nothing is routed.
        attention: (m, T) weight of each token in each capsule; None where capsules do not pool tokens.
    """

    gradient: np.ndarray | None = None
    coupling: np.ndarray | None = None
    attention: np.ndarray | None = None


def trace_labels(network: nn.Module, tokens: np.ndarray, labels: np.ndarray) -> NetworkTrace:
    """Trace labels of one document through a network.

    Args:
        network: A label network, in eval mode.
        tokens: (T,) token ids.
        labels: (L,) label ids.
    """
    device = device_of(network)
    inputs = torch.from_numpy(tokens.astype(np.int64))[None].to(device)  # (1, T)
    outputs = torch.from_numpy(labels.astype(np.int64)).to(device)
    explain = {"explain": True} if _routes(network) else {}
    takes_candidates = getattr(getattr(network, "settings", None), "scores_candidates", False)
    with torch.enable_grad(), _captured_vectors(network) as vectors:
        scored = network(inputs, outputs if takes_candidates else None, **explain)
        logits = scored.logits[0] if takes_candidates else scored.logits[0, outputs]  # (L,)
        gradient = _gradient_times_input(logits, vectors, len(tokens))
    explanation = scored.explanation
    if explanation is None:
        return NetworkTrace(gradient)
    coupling = explanation.coupling[0] if takes_candidates else explanation.coupling[0, outputs]
    attention = explanation.attention
    has_a_state_per_token = attention is not None and attention.shape[2] == len(tokens)
    return NetworkTrace(
        gradient,
        coupling.cpu().numpy(),
        attention[0].cpu().numpy() if attention is not None and has_a_state_per_token else None,
    )


def _routes(network: nn.Module) -> bool:
    """Return whether the network can return couplings."""
    return "explain" in network.forward.__code__.co_varnames


@contextmanager
def _captured_vectors(network: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the word vectors that the network looks up inside the block, in this thread."""
    table = next((module for module in network.modules() if isinstance(module, nn.Embedding)), None)
    captured: list[Tensor] = []
    thread = threading.get_ident()

    def capture(module: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        if threading.get_ident() != thread or captured:
            return None
        captured.append(output.detach().requires_grad_())
        return captured[0]

    if table is None:
        yield captured
        return
    handle = table.register_forward_hook(capture)
    try:
        yield captured
    finally:
        handle.remove()


def _gradient_times_input(logits: Tensor, vectors: list[Tensor], length: int) -> np.ndarray | None:
    """Return (L, T), or None if there is not exactly one vector per token."""
    if not vectors or vectors[0].shape[:2] != (1, length) or not logits.requires_grad:
        return None
    rows = []
    for logit in logits:
        (gradient,) = torch.autograd.grad(logit, vectors[0], retain_graph=True)
        rows.append((gradient * vectors[0].detach())[0].sum(-1).cpu().numpy())  # (T,)
    return np.stack(rows)
