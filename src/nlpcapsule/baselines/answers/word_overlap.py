"""Word overlap of question and answer: the two features of Yu et al. (2014) and Severyn & Moschitti (2015).

share      = |Q ∩ A| / |Q|                                  Q, A: the sets of words
idf share  = Σ_{w ∈ Q ∩ A} idf(w) / Σ_{w ∈ Q} idf(w)
idf(w)     = log((1 + N) / (1 + N_w))                       N_w of N texts contain w

Both works count the words; shares do not favour long questions when one threshold serves all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nlpcapsule.networks.word_match import stands_in

FEATURES = 2


def overlap_features(
    questions: Tensor, answers: Tensor, question_of: Tensor, idf: Tensor, padding_id: int = 0
) -> Tensor:
    """Return the share of a question's words that an answer repeats, plain and weighted by idf.

    Args:
        questions: (Q, l) token ids.
        answers: (A, l') token ids.
        question_of: (A,) the row of `questions` each answer belongs to.
        idf: (V,) weight of each word.
        padding_id: Id of the padding token.

    Returns:
        (A, 2) float32 in [0, 1]; 0 if a question has no words or all their weights are zero.

    Example:
        >>> questions, answers = torch.tensor([[2, 3, 4, 0]]), torch.tensor([[4, 9, 3]])
        >>> idf = torch.tensor([0, 0, 1, 1, 2, 1, 1, 1, 1, 1.0])
        >>> overlap_features(questions, answers, torch.tensor([0]), idf)
        tensor([[0.6667, 0.7500]])
    """
    asked = questions.sort(dim=1).values  # (Q, l)
    is_new = torch.ones_like(asked, dtype=torch.bool)
    is_new[:, 1:] = asked[:, 1:] != asked[:, :-1]  # a word asked twice counts once
    counted = is_new & (asked != padding_id)
    weights = torch.stack([counted.float(), counted * idf.float()[asked]], dim=-1)  # (Q, l, 2)

    found = stands_in(answers, asked[question_of])  # (A, l)
    repeated = (weights[question_of] * found.unsqueeze(-1)).sum(dim=1)  # (A, 2)
    total = weights.sum(dim=1)[question_of]  # (A, 2)
    return torch.where(total > 0, repeated / total.clamp(min=1e-9), 0.0)
