"""Check that the parts of a loaded model fit each other."""

from typing import Any

import numpy as np

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.scoring.nominated_scorer import NominatedScorer

_MOST_DOCUMENTS = 2**53
_TRIED_WORDS = 32


def check_label_rows(rows: Any) -> None:
    """Reject a labels.json whose rows are not labels with counts."""
    if not isinstance(rows, list) or not rows:
        raise ModelFolderError("labels.json: expected a list of labels, with one at least")
    for number, row in enumerate(rows):
        match row:
            case {"label": str(label), "documents": int(count), **others} if 0 <= count <= _MOST_DOCUMENTS:
                name = others.pop("name", "-")
                is_named = isinstance(name, str) and bool(name.strip()) and not others
                is_right = bool(label.strip()) and not isinstance(count, bool) and is_named
            case _:
                is_right = False
        if not is_right:
            problem = f"row {number + 1} is no label with its documents: {row!r:.80}"
            raise ModelFolderError(f"labels.json: {problem}")


def check_model(model: LabelModel | AnswerModel) -> None:
    """Check that the parts of a model fit each other, or raise a ModelFolderError or a DataError.

    Compares labels, tokenizer, network, lexical system, fusion weights, facts and settings, then ranks a text
    of known words.
    """
    size, special = model.tokenizer.size, (model.tokenizer.padding_id, model.tokenizer.unknown_id)
    if not all(0 <= token < size for token in special):
        problem = "the padding or the unknown token has no place in the vocabulary"
        raise ModelFolderError(f"tokenizer.json: {problem}")
    if isinstance(model, LabelModel):
        _check_labels(model.labels, model.facts.training_documents)
        _check_scorer(model)
    _try(model)


def _check_labels(labels: LabelVocabulary, documents: int | None) -> None:
    if len(set(labels.ids)) < len(labels):
        raise ModelFolderError("labels.json: a label is there twice")
    if labels.names is not None and len(labels.names) != len(labels):
        raise ModelFolderError("labels.json: some labels have a name and some have none")
    counts = labels.counts
    if documents is not None and counts.max() > documents:
        problem = f"a label has more than the {documents:,} documents of the training"
        raise ModelFolderError(f"labels.json: {problem}")
    used = [(-int(count), label) for label, count in zip(labels.ids, counts, strict=True) if count]
    if used != sorted(used) or (np.diff(counts) > 0).any():
        raise ModelFolderError("labels.json: the labels are not in their order, most frequent first")


def _check_scorer(model: LabelModel) -> None:
    counts, documents = model.labels.counts, model.facts.training_documents
    wanted, found = model.config.lexical, model.facts.lexical
    if found is not None and wanted not in ("auto", found):
        raise ModelFolderError(f"facts.json names the lexical system {found!r:.40}, config.json {wanted!r}")
    match model.scorer:
        case LexicalScorer(ranker=ranker):
            ranker.check(model.tokenizer.size, len(counts))
        case HybridScorer(lexical=lexical, fusion=fusion):
            lexical.check(model.tokenizer.vocabulary, counts, documents)
            fusion.check(lexical.name_match is not None)
            if (lexical.name_match is None) != (model.config.text.label_names is None):
                raise ModelFolderError("labels have names in some files and none in others")
        case NominatedScorer():
            pass
        case _ if wanted is None and 0 < model.config.inference.candidates < len(counts):
            raise ModelFolderError("the network that nominates the candidates is missing")


def _try(model: LabelModel | AnswerModel) -> None:
    """Rank a text of known words and one of unknown words, to find remaining problems at loading time."""
    known = " ".join(word for word in model.tokenizer.vocabulary[:_TRIED_WORDS] if word)
    if isinstance(model, LabelModel):
        ranked = model.rank_tokens(model.encode([known, ""]), top_k=5)
        scores, is_inside = ranked.scores, (ranked.labels >= 0) & (ranked.labels < len(model.labels))
    else:
        question = Question(known, (Candidate(known), Candidate("")))
        scores, is_inside = np.concatenate(model.log_odds([question])), np.ones(1, dtype=bool)
    if not np.isfinite(scores).all() or not is_inside.all():
        raise ModelFolderError("the model gives scores that are no numbers")
