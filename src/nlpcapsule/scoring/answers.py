"""Score candidate answers of encoded questions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from nlpcapsule.data.encoded import EncodedQuestions
from nlpcapsule.scoring.network_scorer import device_of
from nlpcapsule.scoring.scorer import check_eval_mode


@torch.inference_mode()
def score_answers(
    network: nn.Module,
    questions: EncodedQuestions,
    *,
    padding_id: int = 0,
    batch: int = 64,
    bf16: bool = False,
    advance: Callable[[int], None] | None = None,
) -> list[np.ndarray]:
    """Score candidates by the log-odds that they are right.

    Log-odds avoid ties: the probabilities of a confident network all round to 1.0 in float32.

    Args:
        network: An answer network, in eval mode.
        questions: The questions.
        padding_id: Id of the padding token.
        batch: Questions per forward pass.
        bf16: Computes in bf16.
        advance: Called with the number of questions done since the last call, for progress.

    Returns:
        One array per question, in the candidates' own order.
    """
    check_eval_mode(network)
    device = device_of(network)
    scores: list[np.ndarray] = []
    for start in range(0, len(questions), batch):
        rows = np.arange(start, min(start + batch, len(questions)))
        candidates = [questions.candidates(int(row)) for row in rows]
        answers = np.concatenate(candidates)
        question_of = np.repeat(np.arange(len(rows)), [len(part) for part in candidates])
        if len(answers) == 0:
            scores += [np.zeros(0, dtype=np.float32)] * len(rows)
            _tell(advance, rows)
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
        _tell(advance, rows)
    return scores


def _tell(advance: Callable[[int], None] | None, rows: np.ndarray) -> None:
    if advance is not None:
        advance(len(rows))
