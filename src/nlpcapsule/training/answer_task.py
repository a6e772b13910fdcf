"""The task of ranking candidate answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.config import Config
from nlpcapsule.data.batches import batch_rows
from nlpcapsule.data.encoded import EncodedQuestions
from nlpcapsule.evaluation.answer_metrics import answer_metrics
from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.scoring.answers import score_answers
from nlpcapsule.scoring.network_scorer import device_of
from nlpcapsule.training.loop import WARMUP

_MOST_CANDIDATES = 16  # per question and step: long lists of wrong answers would dominate the loss
_PRETRAINED_WARMUP = 0.1


@dataclass(eq=False)
class AnswerTask:
    """Batches, loss and dev metrics for answer networks; without dev questions, nothing is evaluated."""

    config: Config
    train: EncodedQuestions
    dev: EncodedQuestions | None
    padding_id: int = 0

    select_by = "MAP"

    def __post_init__(self) -> None:
        self.title = f"{self.config.model.name} (answers)"
        self.warmup = WARMUP if self.config.transformer is None else _PRETRAINED_WARMUP

    @property
    def lengths(self) -> np.ndarray:
        """(N,) tokens of each question."""
        return self.train.questions.lengths

    def batches(self, epoch: int) -> Sequence[np.ndarray]:
        """Return the epoch's batches of question indices."""
        training = self.config.training
        return batch_rows(self.lengths, training.batch_size, training.seed, epoch)

    def loss(self, network: nn.Module, rows: np.ndarray, step_seed: Sequence[int]) -> Tensor:
        """Return the loss of a batch with at most 16 candidates per question, including all right ones."""
        device = device_of(network)
        generator = np.random.default_rng(step_seed)
        chosen = [self._candidates(int(row), generator) for row in rows]
        candidates = np.concatenate(chosen)
        arrays = (
            self.train.questions.padded(rows, self.padding_id),
            self.train.answers.padded(candidates, self.padding_id),
            np.repeat(np.arange(len(rows)), [len(part) for part in chosen]),
            self.train.labels[candidates],
        )
        questions, answers, question_of, labels = (torch.from_numpy(array).to(device) for array in arrays)
        logits = network(questions, answers, question_of)
        return answer_loss(self.config.training.loss, logits, labels, question_of)

    def _candidates(self, question: int, generator: np.random.Generator) -> np.ndarray:
        rows = generator.permutation(self.train.candidates(question))
        right_first = rows[np.argsort(-self.train.labels[rows], kind="stable")]
        return right_first[:_MOST_CANDIDATES]

    def dev_metrics(self, network: nn.Module) -> dict[str, float]:
        """Return MAP and MRR on dev; the network is in eval mode."""
        figures = self.evaluate(network)
        return {} if figures is None else {name: figures[name] for name in ("MAP", "MRR")}

    def evaluate(self, network: nn.Module) -> dict[str, float] | None:
        """Return all metrics on dev; None without dev questions."""
        if self.dev is None:
            return None
        batch_size = self.config.inference.batch_size
        scores = score_answers(network, self.dev, padding_id=self.padding_id, batch=batch_size)
        return answer_metrics(scores, [self.dev.labels[self.dev.candidates(i)] for i in range(len(self.dev))])
