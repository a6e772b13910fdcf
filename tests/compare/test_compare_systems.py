"""Which systems are compared, and with which settings."""

from __future__ import annotations

import pytest

from nlpcapsule.compare import systems
from nlpcapsule.compare.systems import DEFAULT_SYSTEMS, chosen_systems, missing_package, system_configs
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
    ("wanted", "message"),
    [
        ("one-vs-rst", "no system 'one-vs-rst' for labels: did you mean 'one-vs-rest'"),
        ("bm25", "no system 'bm25' for labels"),
        (" , ", "names no system"),
    ],
)
def test_unknown_systems_are_rejected(wanted: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen_systems(wanted, "labels")


def test_settings_go_to_their_system() -> None:
    found = system_configs(
        ["kim-cnn", "one-vs-rest"], "labels", ["kim-cnn.epochs=3", "kim-cnn.model.filters=7"], seed=5
    )
    assert found["kim-cnn"] == Config.build(
        "labels", "kim-cnn", overrides={"epochs": 3, "filters": 7, "training.seed": 5}
    )
    assert found["one-vs-rest"] == Config.build("labels", "one-vs-rest", overrides={"training.seed": 5})


def test_a_setting_for_all_goes_to_those_that_have_it_and_may_be_overridden() -> None:
    given = ["all.max_tokens=200", "all.filters=8", "all.embedding_size=4", "paper.embedding_size=16"]
    found = system_configs(["kim-cnn", "one-vs-rest", "paper"], "labels", given)
    assert {name: config.text.max_tokens for name, config in found.items()} == dict.fromkeys(found, 200)
    assert (found["kim-cnn"].model.filters, found["kim-cnn"].model.embedding_size) == (8, 4)
    assert found["paper"].model.embedding_size == 16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs=3", "expected SYSTEM.key=value"),
        ("kim-cnn.epochs", "expected SYSTEM.key=value"),
        ("xml-cnn.epochs=3", "'xml-cnn' is not among the systems compared: did you mean 'kim-cnn'"),
        ("kim-cnn.epoch=3", "kim-cnn: unknown setting 'epoch': did you mean 'training.epochs'"),
        ("kim-cnn.epochs=many", "training.epochs='many'"),
        ("kim-cnn.name=paper", "name the systems with --systems"),
        ("all.colour=red", "unknown setting 'colour'"),
        ("all.embedding_size=4", "--set, paper: model.embedding_size=4: input should be greater"),
        ("all.max_tokens=0", "--set, kim-cnn: text.max_tokens=0: input should be greater"),
    ],
)
def test_settings_that_cannot_be_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        system_configs(["kim-cnn", "paper"], "labels", [text])


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    assert missing_package("label-query") is None
    assert missing_package("convolution-linear") is None
    for system in ("transformer-linear", "embedding-linear", "bi-encoder"):
        assert "pip install 'nlpcapsule[transformers]'" in (missing_package(system) or "")
    trees = missing_package("fast-xml") or ""
    assert "'numba'" in trees
    assert "pip install 'nlpcapsule[trees]'" in trees


def test_hybrid_may_start_from_a_preset() -> None:
    found = system_configs(["hybrid", "one-vs-rest"], "labels", ["hybrid.epochs=3"], "small")
    assert found["hybrid"] == Config.build("labels", overrides={"epochs": 3}, preset="small")
    with pytest.raises(ConfigError, match="--preset small is for hybrid"):
        system_configs(["one-vs-rest"], "labels", [], "small")
