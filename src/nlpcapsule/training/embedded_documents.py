"""Document embeddings that are computed once, for networks whose transformer is frozen.

A document becomes a row in a table of embeddings, and its only "token" is the row's index. This reuses the
task and the training loop of the other networks, and no epoch runs the transformer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.networks.preparation import EmbedsDocuments
from nlpcapsule.networks.scored import Scored
from nlpcapsule.scoring.network_scorer import device_of
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress


class EmbeddedHead(nn.Module):
    """A linear head over a table of embeddings.

    Args:
        head: The head, which is trained in place.
        embeddings: (N, h).
    """

    embeddings: Tensor

    def __init__(self, head: nn.Module, embeddings: Tensor) -> None:
        super().__init__()
        self.head = head
        self.register_buffer("embeddings", embeddings, persistent=False)  # not part of checkpoints

    def forward(self, rows: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels of the documents in rows (B, 1) of the table; other arguments as in any network."""
        return Scored(self.head(self.embeddings[rows[:, 0]], outputs))


class EmbeddedDocuments(NamedTuple):
    """The head to train and the embedded documents.

    Attributes:
        head: The network's head over the embeddings of all documents.
        train: Training documents; their tokens are row numbers.
        dev: Held-out documents, likewise, or None.
    """

    head: EmbeddedHead
    train: EncodedDocuments
    dev: EncodedDocuments | None


def embed_documents(
    network: EmbedsDocuments, data: PreparedLabels, batch: int, progress: TrainingProgress
) -> EmbeddedDocuments:
    """Embed all documents, each once.

    Args:
        network: The network, on the device to compute on.
        data: The documents.
        batch: Documents per forward pass.
        progress: Receives progress.
    """
    parts = [data.train] if data.dev is None else [data.train, data.dev]
    tokens = Ragged.from_rows(row for part in parts for row in part.tokens)
    table = _embeddings(network, tokens, data.tokenizer.padding_id, batch, progress)
    count = len(data.train)
    train = EncodedDocuments(_numbers(0, count), data.train.labels)
    dev = None if data.dev is None else EncodedDocuments(_numbers(count, len(tokens)), data.dev.labels)
    return EmbeddedDocuments(EmbeddedHead(network.head, table), train, dev)


def _numbers(start: int, end: int) -> Ragged:
    """Return rows of one number each, from `start` up to `end` (exclusive)."""
    return Ragged(np.arange(start, end, dtype=np.int32), np.arange(end - start + 1))


def _embeddings(
    network: EmbedsDocuments, tokens: Ragged, padding_id: int, batch: int, progress: TrainingProgress
) -> Tensor:
    """Return embeddings (N, h) on the network's device."""
    device = device_of(network.head)
    table = torch.zeros(len(tokens), network.embedding_width, device=device)
    order = np.argsort(tokens.lengths, kind="stable")  # batch documents of similar length together
    progress.start("embedding", total=len(tokens))
    network.eval()
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs = torch.from_numpy(tokens.padded(rows, padding_id)).to(device)
        table[torch.from_numpy(rows).to(device)] = network.embed(inputs)
        progress.parts(start + len(rows), len(order))
    return table
