"""Tiny models to explain: a hybrid, networks alone, a lexical system alone."""

import pytest

from nlpcapsule import CapsuleClassifier
from nlpcapsule.sample import load_documents

SIZES = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4}
SETTINGS = {
    "hybrid": {**SIZES, "lexical": "one-vs-rest"},
    "label-query": SIZES,
    "paper": SIZES,
    "kim-cnn": {"embedding_size": 8, "filters": 8},
    "one-vs-rest": {"max_tokens": 400},
}


@pytest.fixture(scope="session")
def estimators():
    """Estimators by the name of their system, each trained when it is first asked for."""
    documents, fitted = load_documents("train")[:150], {}

    def estimator(name):
        if name not in fitted:
            settings = {"max_tokens": 60, **SETTINGS[name]}
            fitted[name] = CapsuleClassifier(name, epochs=2, settings=settings).fit(
                [row.text for row in documents], [row.labels for row in documents]
            )
        return fitted[name]

    return estimator
