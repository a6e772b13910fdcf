"""The task of predicting the labels of documents."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.config import Config
from nlpcapsule.data.batches import batch_rows
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.outputs import Outputs, all_outputs, batch_outputs, hard_outputs, uniform_outputs
from nlpcapsule.evaluation.label_metrics import per_document_metrics
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.scoring.documents import rank_documents
from nlpcapsule.scoring.network_scorer import NetworkScorer, device_of
from nlpcapsule.training.gradients import is_bf16
from nlpcapsule.training.loop import WARMUP
from nlpcapsule.training.shared_work import joined_shares, share_of

MOST_DEV_DOCUMENTS = 2_000  # ranked after an epoch; the final figures are those of all
_RANKED = 5  # labels per dev document that the metrics of an epoch look at


@dataclass(eq=False)
class LabelTask:
    """Batches, loss and dev metrics for label networks; without dev documents, nothing is evaluated."""

    config: Config
    train: EncodedDocuments
    dev: EncodedDocuments | None
    labels: LabelVocabulary
    padding_id: int = 0
    train_candidates: np.ndarray | None = None  # (N, C) nominated labels, the hard negatives
    dev_candidates: np.ndarray | None = None  # (M, C) those that are ranked; None ranks all
    title: str = "training"

    select_by = "nDCG@5"
    warmup = WARMUP

    def __post_init__(self) -> None:
        # A named label without examples is never a negative: only its name decides where it belongs.
        taught = (self.labels.counts > 0) | (not self.config.text.label_names)
        self._taught = np.flatnonzero(taught)  # (n',) labels that are outputs in training
        self._place = np.where(taught, np.cumsum(taught) - 1, -1)  # (n,) among these, or -1

    @property
    def lengths(self) -> np.ndarray:
        """(N,) tokens of each document."""
        return self.train.tokens.lengths

    def batches(self, epoch: int) -> Sequence[np.ndarray]:
        """Return the epoch's batches of row indices."""
        training, shuffles = self.config.training, self.config.network.shuffles
        return batch_rows(self.lengths, training.batch_size, training.seed, epoch, shuffles)

    def loss(self, network: nn.Module, rows: np.ndarray, step_seed: Sequence[int]) -> Tensor:
        """Return the loss of a batch over its outputs D⁺ ∪ D⁻."""
        device = device_of(network)
        tokens = torch.from_numpy(self.train.tokens.padded(rows, self.padding_id)).to(device)
        outputs = self.outputs(rows, step_seed)
        ids, valid = (
            None if array is None else torch.from_numpy(array).to(device)
            for array in (outputs.ids, outputs.valid)
        )
        targets = torch.from_numpy(outputs.targets).to(device)
        scored = network(tokens, ids, valid)
        weight = getattr(self.config.network, "negative_weight", 1.0)
        losses = [
            label_loss(self.config.training.loss, logits, targets, valid, weight)
            for logits in (scored.logits, scored.by_name)
            if logits is not None
        ]
        return torch.stack(losses).sum()

    def outputs(self, rows: np.ndarray, step_seed: Sequence[int]) -> Outputs:
        """Return the labels that a batch is routed to."""
        outputs = self._taught_outputs(rows, step_seed)
        if len(self._taught) == len(self.labels):
            return outputs
        return replace(outputs, ids=self._taught if outputs.ids is None else self._taught[outputs.ids])

    def _taught_outputs(self, rows: np.ndarray, step_seed: Sequence[int]) -> Outputs:
        """Return the outputs, renumbered among the labels that are outputs in training."""
        own = [self._place[self.train.labels[int(row)]] for row in rows]
        training, count = self.config.training, len(self._taught)
        match training.negatives:
            case "batch":
                return batch_outputs(own, count)
            case "uniform":
                return uniform_outputs(own, count, training.negative_count, np.random.default_rng(step_seed))
            case "hard" if self.train_candidates is not None:
                nominated = self._place[self.train_candidates[rows]]  # (B, C)
                return hard_outputs(own, nominated, training.negative_count)
            case _:
                return all_outputs(own, count)

    def dev_metrics(self, network: nn.Module) -> dict[str, float]:
        """Return P@1, P@5 and the selection metric on dev, or on a sample; the network is in eval mode."""
        if self.dev is None:
            return {}
        rows = self._dev_rows(self.dev)
        own = share_of(rows)
        bf16 = is_bf16(self.config.training, device_of(network))
        scorer = NetworkScorer(network, self.padding_id, self.config.inference.batch_size, bf16)
        candidates = None if self.dev_candidates is None else self.dev_candidates[own]
        ranked = rank_documents(scorer, self.dev.tokens.take(own), _RANKED, candidates=candidates).labels
        count = len(self.labels) if candidates is None else candidates.shape[1]
        ranked = ranked.reshape(len(own), min(_RANKED, count))  # also where there are no rows
        ranked = joined_shares(ranked, len(rows))  # (M, K)
        truth = [self.dev.labels[int(row)] for row in rows]
        figures = per_document_metrics(ranked, truth, (1, 5))
        return {name: float(figures[name].mean()) for name in ("P@1", "P@5", self.select_by)}

    def _dev_rows(self, dev: EncodedDocuments) -> np.ndarray:
        """Return the dev documents that epochs are compared on: all, or a fixed sample of many."""
        if len(dev) <= MOST_DEV_DOCUMENTS:
            return np.arange(len(dev))
        labelled = np.flatnonzero(dev.labels.lengths)
        chosen = np.random.default_rng(self.config.training.seed).permutation(labelled)
        return np.sort(chosen[:MOST_DEV_DOCUMENTS])
