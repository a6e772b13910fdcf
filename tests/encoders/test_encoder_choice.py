"""Choosing label-query's encoder: what is refused, in words, and the command line's shortcut."""

import json
import sys

import pytest
from encoder_runs import SIZES, SIZES_OF, encoder_config, fitted_labels, planted_documents
from tiny_transformer import write_transformer

from nlpcapsule.cli.app import main
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError
from nlpcapsule.model_folder import load_model
from nlpcapsule.training import fit_labels


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "bi-lstm"}, "unknown encoder 'bi-lstm': did you mean 'bilstm'?"),
        ({"encoder": "convolutions"}, "unknown encoder 'convolutions': did you mean 'convolution'?"),
        ({"encoder": ""}, "model.network.encoder.path=''"),
        ({"encoder": "bilstm", "gradient_checkpointing": True}, "unknown setting 'gradient_checkpointing'"),
        ({"encoder": "some/bert", "window": 12, "stride": 11}, "encoder.stride=11 would leave tokens out"),
        ({"overlap": True}, "overlap compares questions with answers"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, message):
    with pytest.raises(ConfigError) as refused:
        Config.build(overrides=settings)
    assert message in str(refused.value)


def test_a_transformer_reads_questions_and_answers_in_one_piece():
    settings = {"encoder": "some/bert", "max_tokens": 40}
    assert Config.build("answers", overrides=settings).transformer == "some/bert"
    with pytest.raises(ConfigError, match=r"text\.max_tokens=40 does not fit encoder\.window=39"):
        Config.build("answers", overrides={**settings, "window": 39})


def test_a_transformer_leaves_no_words_of_questions_and_answers_out():
    with pytest.raises(ConfigError, match=r"encoder\.word_dropout=0\.1 does not go with a pretrained transf"):
        Config.build("answers", overrides={"encoder": "some/bert", "word_dropout": 0.1})


def test_windows_may_lie_side_by_side_or_overlap():
    for stride in (None, 1, 10):
        overrides = {"encoder": "some/bert", "window": 12, "stride": stride}
        assert Config.build(overrides=overrides).network.encoder.stride == stride


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_the_command_line_takes_an_encoder(encoder, tmp_path, monkeypatch, capfd):
    name = write_transformer(tmp_path / "bert") if encoder == "transformer" else encoder
    rows = [{"text": one.text, "labels": one.labels} for one in planted_documents(10, words=20)]
    data, model = tmp_path / "documents.jsonl", tmp_path / "model"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    capfd.readouterr()

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["nlpcapsule", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, capfd.readouterr().err
        return capfd.readouterr()

    sizes = [f"--set={key}={value}" for key, value in {**SIZES, **SIZES_OF[encoder]}.items()]
    assert run("train", data, "--output", model, "--encoder", name, "-q", *sizes) == ("", "")
    chosen = load_model(model).config.network.encoder
    assert getattr(chosen, "path", chosen.name) == str(name)
    assert len(run("predict", model, data).out.splitlines()) == len(rows)
    assert "P@1" in run("evaluate", model, data).out


def test_an_encoder_without_weights_is_refused_before_the_words_are_learned(tmp_path, monkeypatch):
    folder = write_transformer(tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    learned = []
    monkeypatch.setattr(fit_labels, "fit_evidence", lambda *_: learned.append("words"))
    config = encoder_config("transformer", folder, lexical="one-vs-rest", dev_fraction=0.2)
    with pytest.raises(ConfigError, match="is no pretrained transformer"):
        fitted_labels(tmp_path / "model", config, planted_documents(20, words=5))
    assert not learned


def test_a_network_without_a_choice_of_encoders_refuses_one(tmp_path, monkeypatch, capfd):
    arguments = ["train", "data.jsonl", "--output", str(tmp_path / "model"), "--model", "paper"]
    monkeypatch.setattr(sys, "argv", ["nlpcapsule", *arguments, "--encoder", "bilstm"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "'paper' has no encoder to choose" in capfd.readouterr().err
