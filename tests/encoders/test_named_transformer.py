"""Label names with a pretrained transformer: read by it, and looked for in whole words."""

import json

import numpy as np
import pytest
from encoder_runs import encoder_config, fitted_labels, planted_documents
from planted_texts import SIGNS
from tiny_transformer import write_transformer

from nlpcapsule.data.documents import Document
from nlpcapsule.model_folder import load_model


def test_a_label_without_examples_is_among_the_candidates_by_its_name(tmp_path):
    kinds = list(SIGNS)
    names = tmp_path / "names.json"
    names.write_text(json.dumps(SIGNS))
    every = planted_documents(120, words=10)
    known = [row for row in every if row.labels != (kinds[-1],)]
    documents = [Document(row.text, row.labels if row in known else ()) for row in every]
    config = encoder_config(
        "transformer",
        write_transformer(tmp_path / "transformer"),
        **{"text.label_names": str(names), "lexical": "one-vs-rest", "candidates": 10},
    )
    model = fitted_labels(tmp_path / "model", config, documents)
    assert model.labels.ids[-1] == kinds[-1]
    assert np.linalg.norm(model.network.names.names, axis=1) == pytest.approx(np.ones(len(kinds)), abs=1e-5)
    tokens = model.encode([row.text for row in every if row not in known])
    candidates, _ = model.scorer.lexical.top(tokens, 10)
    assert (candidates[:, -1] == len(kinds) - 1).all()
    matches = model.scorer.lexical.names(tokens, candidates)
    assert (matches[..., 0].argmax(axis=1) == candidates.shape[1] - 1).all()
    opened = load_model(tmp_path / "model")
    assert np.array_equal(opened.rank_tokens(tokens, 3).labels, model.rank_tokens(tokens, 3).labels)
