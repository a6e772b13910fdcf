"""Prepare documents for training: tokenize them, collect their labels, hold out a part."""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents, encode_texts
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.training.preparation import (
    DocumentPart,
    given_tokenizer,
    known_rows_to_hold_out,
    rows_to_hold_out,
    starting_vectors,
)

_NAME_TOKENS = 64  # of a name and its alternatives


@dataclass(frozen=True)
class PreparedLabels:
    """Documents ready to be trained on, as token ids without their text."""

    tokenizer: WordTokenizer  # trained on the training part alone, or given
    labels: LabelVocabulary  # of the training part, and those known only by name
    train: EncodedDocuments
    dev: EncodedDocuments | None  # held out
    vectors: np.ndarray | None  # (V, v) initial word vectors
    notes: tuple[str, ...] = ()  # remarks about the data, for the user
    thesaurus: Thesaurus | None = None  # the labels' names
    ids: tuple[str | None, ...] | None = None  # of the training documents, None where one has none

    @property
    def taught(self) -> np.ndarray:
        """Ids of the labels with examples: all except those known only by name."""
        return np.flatnonzero((self.labels.counts > 0) | (self.thesaurus is None))

    def name_texts(self) -> Ragged:
        """Return the tokens of all names of each label."""
        assert self.thesaurus is not None
        return encode_texts(self.thesaurus.texts(self.labels.ids), self.tokenizer, _NAME_TOKENS)

    def name_forms(self) -> list[Ragged]:
        """Return the tokens of each label's name and alternative names, one row per name."""
        assert self.thesaurus is not None
        forms = [self.thesaurus[label].forms for label in self.labels.ids]
        rows = iter(encode_texts((form for label in forms for form in label), self.tokenizer, _NAME_TOKENS))
        return [Ragged.from_rows(next(rows) for _ in label) for label in forms]

    def fingerprint(self) -> str:
        """Return a fingerprint of the data."""
        parts = [self.train.fingerprint()]
        if self.dev is not None:
            parts.append(self.dev.fingerprint())
        if self.thesaurus is not None:
            parts.append(hashlib.sha256(self.thesaurus.to_json().encode()).hexdigest()[:16])
        return "-".join(parts)


def prepare_labels(
    train: Iterable[Document], dev: Iterable[Document] | None, config: Config
) -> PreparedLabels:
    """Tokenize documents and collect their labels.

    Documents are read several times, and their texts are not kept: pass a list or a file that can be read
    again, not a generator.
    """
    names = config.text.label_names
    thesaurus = None if names is None else Thesaurus.read(names)
    if dev is None:
        train, dev = _held_out(train, config)
    if dev is None and config.inference.threshold_for != "micro-F1":  # the default needs none
        raise ConfigError(
            f"inference.threshold_for={config.inference.threshold_for!r}: a threshold is tuned on held-out "
            "documents, and there are none: give --dev data, or set training.dev_fraction"
        )
    counts: Counter[str] = Counter()
    ids: list[str | None] = []

    def texts() -> Iterator[str]:
        for document in train:
            counts.update(set(document.labels))
            ids.append(document.id)
            yield document.text
        if thesaurus is not None:
            for _ in range(config.text.min_count):  # words of names count as frequent enough
                yield from thesaurus.texts(thesaurus)

    tokenizer = given_tokenizer(config)
    if tokenizer is None:
        tokenizer = WordTokenizer.train(texts(), config.text.vocabulary_size, config.text.min_count)
    else:
        for _ in texts():  # collects labels and ids
            pass
    labels = LabelVocabulary.from_counts(counts)
    if thesaurus is not None:
        labels = labels.with_names(thesaurus)
    length = config.text.max_tokens
    encoded = encode_documents(train, tokenizer, labels, length)
    held_out = None if dev is None else encode_documents(dev, tokenizer, labels, length)
    notes = _notes(encoded, held_out, labels, tokenizer)
    if config.lexical is not None and held_out is None:
        notes.append("no documents are held out: the network ranks alone, without a lexical system")
    if thesaurus is not None:
        used = [label for label, count in zip(labels.ids, labels.counts, strict=True) if count]
        named = sum(label in thesaurus for label in used)
        notes.append(
            f"{named:,} of {len(used):,} training labels have a name in {config.text.label_names}"
            + ("" if named else ": is it the right file?")
        )
    vectors = None
    if config.transformer is None:
        vectors = starting_vectors(config, tokenizer, notes)
    elif config.text.vectors:
        notes.append("text.vectors is not read: a pretrained transformer has word vectors of its own")
    own_ids = tuple(ids) if any(ids) else None
    return PreparedLabels(tokenizer, labels, encoded, held_out, vectors, tuple(notes), thesaurus, own_ids)


def _held_out(
    train: Iterable[Document], config: Config
) -> tuple[Iterable[Document], Iterable[Document] | None]:
    """Return the training part and the held-out part, if any."""
    fraction, seed = config.training.dev_fraction, config.training.seed
    is_asked_for = config.lexical not in (None, "auto")
    if not fraction and is_asked_for:
        raise ConfigError(
            f"model.lexical={config.lexical!r}: its scores and the network's are weighed on held-out "
            "documents, and there are none: give --dev data, or set training.dev_fraction"
        )
    if not fraction:
        return train, None
    if config.lexical is None:
        held_out = rows_to_hold_out(sum(1 for _ in train), fraction, seed)
    else:
        labels = [tuple(map(sys.intern, document.labels)) for document in train]
        held_out = known_rows_to_hold_out(labels, fraction, seed)
        labelled = sum(bool(labels[row]) for row in held_out)
        if not labelled and not is_asked_for:
            return train, None  # the network works alone
        if not labelled:
            raise DataError(
                f"{len(labels)} rows are too few to hold {fraction:.0%} of them out, with labels, on which "
                "the scores of the network and the lexical system would be weighed",
                hint="give --dev data, or train a network alone, as with --model label-query",
            )
    return DocumentPart(train, held_out, inside=False), DocumentPart(train, held_out, inside=True)


def _notes(
    train: EncodedDocuments, dev: EncodedDocuments | None, labels: LabelVocabulary, tokenizer: WordTokenizer
) -> list[str]:
    unlabelled = int((train.labels.lengths == 0).sum())
    named = int((labels.counts == 0).sum())
    notes = [
        f"{len(train):,} training documents ({unlabelled:,} without labels), {len(labels):,} labels"
        + (f" ({named:,} of them known by name alone)" if named else "")
        + f", {tokenizer.size:,} words"
    ]
    if dev is not None:
        unseen = int((dev.labels.values >= len(labels) - named).sum())
        notes.append(
            f"{len(dev):,} dev documents; {unseen:,} of their {len(dev.labels.values):,} labels "
            "are unknown to training"
        )
    return notes
