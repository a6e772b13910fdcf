"""Train an answer model from questions with candidate answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Question
from nlpcapsule.data.encoded import EncodedQuestions, encode_questions
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.data.vectors import vector_words
from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.encoders.word_encoder import embedding_size
from nlpcapsule.errors import DataError
from nlpcapsule.networks.build import build_network, start_from_texts
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.models import AnswerModel
from nlpcapsule.training.answer_task import AnswerTask
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.preparation import given_tokenizer, hold_out, starting_vectors
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder
from nlpcapsule.training.run_folder import RunFolder
from nlpcapsule.training.shared_work import this_process


@dataclass(frozen=True)
class PreparedAnswers:
    """Questions ready to be trained on, with a tokenizer, word vectors (V, v), and notes for the user."""

    tokenizer: WordTokenizer
    train: EncodedQuestions
    dev: EncodedQuestions | None
    vectors: np.ndarray | None
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """Return a fingerprint of the data."""
        return self.train.fingerprint() + ("" if self.dev is None else "-" + self.dev.fingerprint())


def prepare_answers(
    train: Sequence[Question], dev: Sequence[Question] | None, config: Config
) -> PreparedAnswers:
    """Tokenize questions and candidates, which need labels."""
    if dev is None and config.training.dev_fraction:
        train, dev = hold_out(train, config.training.dev_fraction, config.training.seed)
    if not any(candidate.label == 1 for question in train for candidate in question.candidates):
        raise DataError("no candidate is marked right (label 1), so there is nothing to learn")

    texts = [text for row in train for text in (row.text, *(answer.text for answer in row.candidates))]
    tokenizer = given_tokenizer(config) or _trained_tokenizer(texts, config)
    length = config.text.max_tokens
    encoded = encode_questions(train, tokenizer, length)
    held_out = None if dev is None else encode_questions(dev, tokenizer, length)
    notes = [
        f"{len(encoded):,} training questions with {len(encoded.labels):,} candidates, "
        f"{(encoded.labels == 1).mean():.1%} of them right; {tokenizer.size:,} words"
    ]
    vectors = None
    if config.network.word_vector_size:
        vectors = starting_vectors(config, tokenizer, notes)
    elif config.text.vectors:
        notes.append(f"text.vectors is not read: {config.model.name} takes no word vectors")
    return PreparedAnswers(tokenizer, encoded, held_out, vectors, tuple(notes))


def _trained_tokenizer(texts: Sequence[str], config: Config) -> WordTokenizer:
    """Train a tokenizer on the training part, adding the vector file's words if words are compared.

    A question's rare words are the most informative, and many of them occur in no training text. Without
    separate ids they would all map to the unknown word.
    """
    size, min_count = config.text.vocabulary_size, config.text.min_count
    tokenizer = WordTokenizer.train(texts, size, min_count)
    if not (config.network.compares_words and config.text.vectors):
        return tokenizer
    known = set(tokenizer.vocabulary)
    unseen = (word for word in vector_words(config.text.vectors) if word not in known)
    further = list(islice(unseen, size - tokenizer.size))  # vector files list frequent words first
    return WordTokenizer.train(chain(texts, *repeat(further, min_count)), size, min_count)


def answer_network(config: Config, data: PreparedAnswers) -> nn.Module:
    """Build the network of a configuration for prepared questions."""
    idf = inverse_document_frequency(data.train.answers, data.tokenizer.size)
    if config.network.compares_words:
        idf[data.tokenizer.unknown_id] = 0  # two unknown words are not the same word
    return build_network(
        config, data.tokenizer.size, padding_id=data.tokenizer.padding_id, vectors=data.vectors, idf=idf
    )


def fit_answers(
    data: PreparedAnswers, config: Config, folder: RunFolder, progress: TrainingProgress
) -> AnswerModel:
    """Train an answer model and write its folder."""
    folder.begin(config, data.fingerprint())
    for note in data.notes:
        progress.say(note)
    network = answer_network(config, data)
    task = AnswerTask(config, data.train, data.dev, data.tokenizer.padding_id)
    start_from_texts(network, data.train.answers)
    history: list[dict[str, Any]] = []
    if any(parameter.requires_grad for parameter in network.parameters()):
        recorder = Recorder(folder.path, "network", folder.tensorboard)
        checkpoint = folder.checkpoint / "network"
        history = train_network(network, task, config.training, checkpoint, progress, recorder)
    else:
        progress.say(f"{config.model.name} has no weights to train")
        network.to(this_process().device).eval()
    facts = ModelFacts(
        training_questions=len(data.train),
        data=data.fingerprint(),
        embedding_size=embedding_size(config.network.word_vector_size, data.vectors),
        epochs_run=len(history),
        dev=task.evaluate(network),
    )
    return folder.finish(AnswerModel(config, data.tokenizer, network, facts))
