"""Answer rankers small enough to be trained in seconds, and a plain loop that trains them."""

import numpy as np
import torch

from class_constants import settings_of
from nlpcapsule.data.encoded import EncodedQuestions
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.evaluation.answer_metrics import answer_metrics
from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.registry import NetworkInputs, find_system

VOCABULARY = 40
SIZES = {
    "cnn-lr": {},
    "severyn-cnn": {"filters": 12, "hidden": 10},
    "cntn": {"filters": 6, "top_k": 3, "text_size": 8, "slices": 3},
    "lstm": {"state_size": 9, "hidden": 8},
    "mv-lstm": {"state_size": 7, "top_k": 4, "hidden": 8},
    "ntn-lstm": {"state_size": 9, "slices": 3},
    "hd-lstm": {"state_size": 9, "hidden": 8},
}

# Every network, with every choice that changes what it computes, with and without overlap.
VARIANTS = [
    *((name, {"overlap": overlap}) for name in SIZES for overlap in (True, False)),
    ("cnn-lr", {"order": 1}),
    *((name, {"layers": 2}) for name in ("lstm", "ntn-lstm", "hd-lstm")),
    *((name, {"pooling": "mean"}) for name in ("lstm", "ntn-lstm", "hd-lstm")),
    *((name, {"similarity": "cosine"}) for name in ("mv-lstm", "hd-lstm")),
]


def variant_name(value):
    """A readable test id for a variant's settings."""
    if isinstance(value, dict):
        return "-".join(f"{key}={setting}" for key, setting in value.items())
    return None


def small_ranker(name, vocabulary_size=VOCABULARY, idf=None, **settings):
    torch.manual_seed(3)
    system = find_system(name)
    chosen = settings_of(system.settings, **{"embedding_size": 8, **SIZES[name], **settings})
    return system.answers(chosen, NetworkInputs(vocabulary_size, padding_id=0, length=14, idf=idf))


def token_rows(*lengths, width=None, seed=5):
    """(B, width) random tokens, filled up with padding."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.zeros(len(lengths), width or max(lengths), dtype=torch.int64)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(1, VOCABULARY, (length,), generator=generator)
    return rows


def questions_of(rows):
    """(question, [(answer, label), ...]) with token lists → encoded questions."""
    answers = [pair for _, candidates in rows for pair in candidates]
    return EncodedQuestions(
        Ragged.from_rows(question for question, _ in rows),
        Ragged.from_rows(answer for answer, _ in answers),
        np.cumsum([0, *(len(candidates) for _, candidates in rows)]),
        np.array([label for _, label in answers]),
    )


def logits_of(network, questions):
    """(candidates,) of all questions, and the question each belongs to."""
    question_of = torch.from_numpy(np.repeat(np.arange(len(questions)), np.diff(questions.offsets)))
    logits = network(
        torch.from_numpy(questions.questions.padded(range(len(questions)), 0)),
        torch.from_numpy(questions.answers.padded(range(len(questions.answers)), 0)),
        question_of,
    )
    return logits, question_of


def taken(questions, rows):
    """Some of the questions, with all their candidates."""
    chosen = [questions.candidates(int(row)) for row in rows]
    offsets = np.cumsum([0, *map(len, chosen)])
    flat = np.concatenate(chosen)
    answers, labels = questions.answers.take(flat), questions.labels[flat]
    return EncodedQuestions(questions.questions.take(rows), answers, offsets, labels)


def train_briefly(network, questions, epochs, learning_rate=1e-2, batch=10):
    """Adam on the pairwise loss, over shuffled questions with all their candidates."""
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    shuffle = np.random.default_rng(7)
    network.train()
    for _ in range(epochs):
        order = shuffle.permutation(len(questions))
        for start in range(0, len(order), batch):
            part = taken(questions, order[start : start + batch])
            logits, question_of = logits_of(network, part)
            optimizer.zero_grad()
            answer_loss("pairwise", logits, torch.from_numpy(part.labels), question_of).backward()
            optimizer.step()
    return network.eval()


def mean_average_precision(network, questions):
    """Of the logits: probabilities of a confident network can be equal in float32, which logits are not."""
    with torch.no_grad():
        scores = logits_of(network, questions)[0].numpy()
    inner = questions.offsets[1:-1]
    return answer_metrics(np.split(scores, inner), np.split(questions.labels, inner))["MAP"]
