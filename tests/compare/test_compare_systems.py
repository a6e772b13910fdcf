"""Which systems are compared, and with which settings."""

from __future__ import annotations

import pytest

from nlpcapsule.compare import systems
from nlpcapsule.compare.systems import DEFAULT_SYSTEMS, chosen_systems, missing_package, system_settings
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError


def test_the_usual_systems_are_known_ones() -> None:
    for kind in ("labels", "answers"):
        usual = chosen_systems(None, kind)
        assert usual == list(DEFAULT_SYSTEMS[kind])
        assert chosen_systems(",".join(usual), kind) == usual


def test_names_are_taken_once_and_in_the_order_given() -> None:
    assert chosen_systems(" omikuji, label-query,,omikuji", "labels") == ["omikuji", "label-query"]


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        ("one-vs-rst", "labels", "no system 'one-vs-rst' for labels: did you mean 'one-vs-rest'"),
        ("bm25", "labels", "no system 'bm25' for labels"),
        ("pecos", "answers", "no system 'pecos' for answers"),
        (" , ", "labels", "names no system"),
    ],
)
def test_unknown_systems_are_refused(wanted: str, kind: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen_systems(wanted, kind)


def test_settings_go_to_their_system_and_build_its_configuration() -> None:
    given = ["kim-cnn.epochs=3", "kim-cnn.model.filters=7", "pecos.beam=20"]
    found = system_settings(["kim-cnn", "one-vs-rest", "pecos"], "labels", given)
    assert found == {
        "kim-cnn": {"training.epochs": 3, "model.filters": 7},
        "one-vs-rest": {},
        "pecos": {"beam": 20},
    }
    config = Config.build("labels", "kim-cnn", overrides=found["kim-cnn"])
    assert (config.training.epochs, config.model.filters) == (3, 7)


def test_a_setting_for_all_goes_to_those_that_have_it() -> None:
    chosen = ["kim-cnn", "one-vs-rest", "pecos"]
    found = system_settings(chosen, "labels", ["all.max_tokens=200", "all.filters=8", "all.beam=7"])
    assert found == {
        "kim-cnn": {"text.max_tokens": 200, "model.filters": 8},
        "one-vs-rest": {"text.max_tokens": 200},
        "pecos": {"max_tokens": 200, "beam": 7},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all.embedding_size=4", "--set, paper: model.embedding_size=4: input should be greater"),
        ("all.model.embedding_size=4", "--set, paper: model.embedding_size=4: input should be greater"),
        ("all.max_tokens=0", "--set, label-query: text.max_tokens=0: input should be greater"),
        ("all.beam=0", "--set, pecos: beam=0: input should be greater"),
    ],
)
def test_a_setting_for_all_that_one_refuses_is_an_error_that_names_it(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        system_settings(["label-query", "one-vs-rest", "pecos", "paper"], "labels", [text])


def test_a_setting_for_all_may_be_followed_by_one_of_a_single_system() -> None:
    given = ["all.embedding_size=4", "paper.embedding_size=16"]
    found = system_settings(["kim-cnn", "paper"], "labels", given)
    assert found == {"kim-cnn": {"model.embedding_size": 4}, "paper": {"model.embedding_size": 16}}


def test_two_ways_to_write_a_setting_are_the_same_and_a_default_is_none() -> None:
    names = ["kim-cnn"]
    assert system_settings(names, "labels", ["kim-cnn.epochs=20"]) == {"kim-cnn": {}}
    short = system_settings(names, "labels", ["kim-cnn.epochs=2"])
    assert short == system_settings(names, "labels", ["kim-cnn.training.epochs=2"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs=3", "expected SYSTEM.key=value"),
        ("kim-cnn.epochs", "expected SYSTEM.key=value"),
        ("xml-cnn.epochs=3", "'xml-cnn' is not among the systems compared: did you mean 'kim-cnn'"),
        ("kim-cnn.epoch=3", "kim-cnn: unknown setting 'epoch': did you mean 'training.epochs'"),
        ("kim-cnn.epochs=many", "training.epochs='many'"),
        ("kim-cnn.name=paper", "name the systems with --systems"),
        ("pecos.baem=3", "pecos: unknown setting 'baem': did you mean 'beam'"),
        ("pecos.beam=0", "pecos: beam=0: input should be greater"),
        ("all.colour=red", "unknown setting 'colour'"),
    ],
)
def test_settings_that_cannot_be_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        system_settings(["kim-cnn", "pecos"], "labels", [text])


def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    assert missing_package("label-query") is None
    assert missing_package("convolution-linear") is None
    for system in ("transformer-linear", "embedding-linear", "bi-encoder"):
        assert "pip install 'nlpcapsule[transformers]'" in (missing_package(system) or "")
    assert "pip install 'nlpcapsule[omikuji]'" in (missing_package("omikuji") or "")


def test_settings_of_another_encoder_or_network_are_told_as_a_whole():
    found = system_settings(["hybrid"], "labels", ["hybrid.encoder=bilstm", "hybrid.layers=2"])["hybrid"]
    assert list(found) == ["model.network.encoder"]
    assert (found["model.network.encoder"]["name"], found["model.network.encoder"]["layers"]) == ("bilstm", 2)
    assert Config.build("labels", "hybrid", overrides=found).network.encoder.layers == 2
    other = system_settings(["hybrid"], "labels", ["hybrid.network=paper", "hybrid.condensed=7"])["hybrid"]
    again = Config.build("labels", "hybrid", overrides=other)
    assert (again.network.name, again.network.condensed) == ("paper", 7)
    assert again == Config.build("labels", assignments=["network=paper", "condensed=7"])


def test_our_own_system_is_a_hybrid_and_may_start_from_a_preset():
    assert system_settings(["hybrid"], "labels", []) == {"hybrid": {}}
    found = system_settings(["hybrid", "one-vs-rest"], "labels", ["hybrid.epochs=3"], "small")
    assert found["hybrid"]["training.negatives"] == "hard"
    assert found["hybrid"]["training.epochs"] == 3
    assert found["hybrid"]["model.network.encoder.filters"] == 128
    assert found["one-vs-rest"] == {}
    with pytest.raises(ConfigError, match="--preset small is for hybrid"):
        system_settings(["one-vs-rest"], "labels", [], "small")
