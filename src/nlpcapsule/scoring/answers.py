"""Scores candidate answers of encoded questions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from nlpcapsule.data.encoded import EncodedQuestions
from nlpcapsule.scoring.documents import device_of


@torch.inference_mode()
def score_answers(
    network: nn.Module,
    questions: EncodedQuestions,
    *,
    padding_id: int = 0,
    batch: int = 64,
    bf16: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> list[np.ndarray]:
    """Log-odds that candidates are right, one array per question, in the candidates' own order.

    Not probabilities: those of a confident network are all 1.0 in float32, and ties count against it.

    Args:
        network: An answer network.
        questions: The questions.
        padding_id: The token that fills rows up.
        batch: Questions per forward pass.
        bf16: Computes in bf16.
        on_batch: Told the number of questions done, for progress.
    """
    was_training = network.training
    network.eval()
    device = device_of(network)
    scores: list[np.ndarray] = []
    for start in range(0, len(questions), batch):
        rows = np.arange(start, min(start + batch, len(questions)))
        candidates = [questions.candidates(int(row)) for row in rows]
        answers = np.concatenate(candidates)
        question_of = np.repeat(np.arange(len(rows)), [len(part) for part in candidates])
        if len(answers) == 0:
            scores += [np.zeros(0, dtype=np.float32)] * len(rows)
            continue
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
            logits = network(
                torch.from_numpy(questions.questions.padded(rows, padding_id)).to(device),
                torch.from_numpy(questions.answers.padded(answers, padding_id)).to(device),
                torch.from_numpy(question_of).to(device),
            )
        flat = logits.float().cpu().numpy()
        ends = np.cumsum([len(part) for part in candidates])[:-1]
        scores += np.split(flat, ends)
        if on_batch:
            on_batch(len(rows))
    network.train(was_training)
    return scores
