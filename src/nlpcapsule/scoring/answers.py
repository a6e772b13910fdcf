"""Score candidate answers of encoded questions."""

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
    advance: Callable[[int], None] | None = None,
) -> list[np.ndarray]:
    """Score candidates by the log-odds that they are right: one array per question, in the candidates' order.

    Log-odds avoid ties: the probabilities of a confident network all round to 1.0 in float32. `batch` is the
    number of questions per forward pass; `advance` gets the number of questions done since its last call.
    """
    check_eval_mode(network)
    device = device_of(network)
    scores: list[np.ndarray] = []
    for start in range(0, len(questions), batch):
        rows = np.arange(start, min(start + batch, len(questions)))
        candidates = [questions.candidates(int(row)) for row in rows]
        answers, counts = np.concatenate(candidates), list(map(len, candidates))
        flat = np.zeros(0, dtype=np.float32)  # (answers,)
        if len(answers):
            inputs = (
                questions.questions.padded(rows, padding_id),  # (B, l)
                questions.answers.padded(answers, padding_id),  # (answers, l')
                np.repeat(np.arange(len(rows)), counts),  # (answers,) the question of each
            )
            logits = network(*(torch.from_numpy(array).to(device) for array in inputs))
            flat = logits.float().cpu().numpy()
        scores += np.split(flat, np.cumsum(counts)[:-1])
        if advance is not None:
            advance(len(rows))
    return scores
