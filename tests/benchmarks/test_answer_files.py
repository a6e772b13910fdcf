"""Which of a data folder's files an answer ranker is given."""

from pathlib import Path

import pytest

from benchmarks.answer_data import AnswerParts
from benchmarks.run_answers import with_files
from nlpcapsule.config import Config

PRETRAINED = {"encoder": "some/bert", "word_dropout": 0.0}


@pytest.mark.parametrize(
    ("model", "settings", "vectors", "encoder"),
    [
        ("label-query", {}, "vectors.txt", "convolution"),
        ("label-query", {"encoder": "bilstm"}, "vectors.txt", "bilstm"),
        ("label-query", PRETRAINED, None, "MiniLM"),
        ("cross-encoder", {}, None, "MiniLM"),
        ("paper", {}, "vectors.txt", None),
        ("bm25", {}, None, None),
    ],
)
def test_word_vectors_or_a_transformer_and_never_both(model, settings, vectors, encoder, tmp_path):
    folder = tmp_path / "MiniLM"
    folder.mkdir()
    parts = AnswerParts([], [], {}, Path("vectors.txt"), folder)
    config = with_files(Config.build("answers", model, overrides=settings), parts)
    assert config.text.vectors == vectors
    section = getattr(config.network, "encoder", None)
    assert config.transformer == (str(folder) if encoder == "MiniLM" else None)
    assert getattr(section, "name", None) == ("transformer" if encoder == "MiniLM" else encoder)


def test_without_a_transformer_in_the_folder_the_settings_name_one():
    parts = AnswerParts([], [], {}, Path("vectors.txt"))
    config = with_files(Config.build("answers", overrides=PRETRAINED), parts)
    assert (config.text.vectors, config.transformer) == (None, "some/bert")
