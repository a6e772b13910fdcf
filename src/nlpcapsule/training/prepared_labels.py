"""Documents made ready to train on: tokenised, their labels collected, a part held out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nlpcapsule.config import Config, LabelQuerySettings
from nlpcapsule.dataset.encoded import EncodedDocuments, encode_documents
from nlpcapsule.dataset.labels import LabelVocabulary
from nlpcapsule.dataset.near_duplicates import find_near_duplicates
from nlpcapsule.models.transformer_encoder import encoder_tokenizer
from nlpcapsule.text.documents import Document
from nlpcapsule.text.tokens import WordTokenizer
from nlpcapsule.training.preparation import hold_out, starting_vectors

_WEIGHED_ON = 0.1  # of the training part, where no dev part is given


@dataclass(frozen=True)
class PreparedLabels:
    """Documents ready to be trained on: all a run needs, and nothing of the text itself.

    Attributes:
        tokenizer: Trained on the training part alone, or given.
        labels: The labels of the training part.
        train: Training documents.
        dev: Held-out documents, or None.
        vectors: (V, v) word vectors to start from, or None.
        notes: What was noticed on the way, for the person who trains.
    """

    tokenizer: WordTokenizer
    labels: LabelVocabulary
    train: EncodedDocuments
    dev: EncodedDocuments | None
    vectors: np.ndarray | None
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """Tells two data sets apart."""
        return self.train.fingerprint() + ("" if self.dev is None else "-" + self.dev.fingerprint())


def prepare_labels(
    train: Iterable[Document], dev: Iterable[Document] | None, config: Config
) -> PreparedLabels:
    """Tokenises documents and collects their labels.

    Args:
        train: Training documents; gone through twice, so a list or a re-readable file, not a generator.
        dev: Held-out documents.
        config: The configuration.
    """
    fraction = config.training.dev_fraction
    if config.inference.lexical != "none":  # two kinds of evidence are weighed on documents neither has seen
        fraction = fraction or _WEIGHED_ON
    if dev is None and fraction:
        train, dev = hold_out(list(train), fraction, config.training.seed)
    label_rows: list[tuple[str, ...]] = []

    def texts() -> Iterator[str]:
        for document in train:
            label_rows.append(document.labels)
            yield document.text

    given = _given_tokenizer(config)
    if given is not None:
        tokenizer = given
        label_rows = [document.labels for document in train]
    else:
        tokenizer = WordTokenizer.train(texts(), config.text.vocabulary_size, config.text.min_count)
    labels = LabelVocabulary.from_labels(label_rows)
    length = config.text.max_tokens
    encoded = encode_documents(train, tokenizer, labels, length)
    held_out = None if dev is None else encode_documents(dev, tokenizer, labels, length)
    notes = _notes(encoded, held_out, labels, tokenizer)
    vectors = None
    if _transformer(config) is None:
        vectors = starting_vectors(config, tokenizer, notes)
    elif config.text.vectors:
        notes.append("text.vectors is not read: a pretrained transformer has word vectors of its own")
    return PreparedLabels(tokenizer, labels, encoded, held_out, vectors, tuple(notes))


def _transformer(config: Config) -> str | None:
    """The pretrained transformer that encodes documents, if one does."""
    model = config.model
    return model.encoder if isinstance(model, LabelQuerySettings) and model.is_pretrained else None


def _given_tokenizer(config: Config) -> WordTokenizer | None:
    """The tokenizer a configuration names, or the one its pretrained transformer was trained with."""
    encoder = _transformer(config)
    if encoder is not None:
        return encoder_tokenizer(encoder, config.text.tokenizer)
    return WordTokenizer.from_file(config.text.tokenizer) if config.text.tokenizer else None


def _notes(
    train: EncodedDocuments, dev: EncodedDocuments | None, labels: LabelVocabulary, tokenizer: WordTokenizer
) -> list[str]:
    unlabelled = int((train.labels.lengths == 0).sum())
    notes = [
        f"{len(train):,} training documents ({unlabelled:,} without labels), {len(labels):,} labels, "
        f"{tokenizer.size:,} words"
    ]
    if dev is not None:
        unseen = int((dev.labels.values >= len(labels)).sum())
        twins = find_near_duplicates(train.tokens, dev.tokens).dev_documents
        notes.append(
            f"{len(dev):,} dev documents; {unseen:,} of their {len(dev.labels.values):,} labels are unknown "
            f"to training; {twins:,} documents have a near-duplicate in training"
        )
    return notes
