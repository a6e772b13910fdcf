"""Fit lexical systems, alone or as part of a hybrid."""

from dataclasses import replace

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.evidence import FittedEvidence, evidence_settings
from nlpcapsule.lexical.name_match import NameMatch, word_texts
from nlpcapsule.lexical.neighbours import Neighbours
from nlpcapsule.lexical.ranker import Fitting, LexicalSettings
from nlpcapsule.lexical.whole_words import UNKNOWN, WholeWords
from nlpcapsule.scoring.documents import RANKED
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.preparation import tuned
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def fit_lexical(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> LabelModel:
    """Fit a lexical system, reusing finished parts from the checkpoint of a stopped run.

    Of the configuration's `training` section only the seed is used.
    """
    assert isinstance(config.model, LexicalSettings)
    progress.start(config.model.name, total=1)
    ignored = (data.tokenizer.padding_id, data.tokenizer.unknown_id)
    checkpoint, seed = folder.checkpoint / "lexical", config.training.seed
    words, label_count = data.tokenizer.vocabulary, len(data.taught)
    fitting = Fitting(words, label_count, ignored, seed, checkpoint, progress.parts)
    fitted = config.model.ranker.fit(config.model, data.train, fitting)
    facts = ModelFacts(training_documents=len(data.train), data=data.fingerprint(), threshold=0.5)
    scorer = LexicalScorer(fitted, len(data.labels))
    model = LabelModel(config, data.tokenizer, data.labels, scorer, facts)
    return model if data.dev is None else tuned(model, model.rank_tokens(data.dev.tokens, RANKED), data.dev)


def fit_evidence(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> FittedEvidence:
    """Fit the lexical system and the nearest neighbours of a hybrid."""
    assert config.lexical is not None
    settings = evidence_settings(config.lexical)
    name = settings.name
    progress.say(f"lexical system: {name}")
    train, vocabulary = data.train, data.tokenizer.vocabulary
    ignored: tuple[int, ...] = (data.tokenizer.padding_id, data.tokenizer.unknown_id)
    whole_words = WholeWords.fit(train.tokens, vocabulary)
    if whole_words is not None:
        train = EncodedDocuments(whole_words(train.tokens), train.labels)
        vocabulary = word_texts(whole_words, data.train.tokens, vocabulary)
        ignored = (UNKNOWN,)
    progress.start(name, total=1)
    checkpoint, seed = folder.checkpoint / "lexical", config.training.seed
    fitting = Fitting(vocabulary, len(data.taught), ignored, seed, checkpoint, progress.parts)
    ranker = settings.ranker.fit(settings, _renumbered(train, data.taught), fitting)
    neighbours = Neighbours.fit(train, len(vocabulary), len(data.labels), ignored, data.ids)
    neighbours = replace(neighbours, tokens=data.train.tokens)
    names = None
    if data.thesaurus is not None:
        forms = data.name_forms()
        if whole_words is not None:
            forms = [whole_words(rows) for rows in forms]
        names = NameMatch.fit(forms, data.labels.counts > 0, train.tokens, vocabulary, ignored)
    return FittedEvidence(ranker, neighbours, whole_words, names)


def _renumbered(documents: EncodedDocuments, labels: np.ndarray) -> EncodedDocuments:
    """Return the documents with label ids renumbered to positions in the given ascending ids."""
    numbers = np.searchsorted(labels, documents.labels.values).astype(np.int32)
    return EncodedDocuments(documents.tokens, Ragged(numbers, documents.labels.offsets))
