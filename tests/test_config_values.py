"""Values that no setting can have: each is an error with the setting's name."""

from __future__ import annotations

import json

import pytest

from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError


@pytest.mark.parametrize(
    "name", ["training.seed", "training.epochs", "text.max_tokens", "inference.candidates"]
)
def test_a_number_that_libraries_cannot_hold_is_refused(name: str) -> None:
    assert Config.build(overrides={name: 2**31 - 1})
    with pytest.raises(ConfigError, match=rf"{name}=2147483648: expected at most 2,147,483,647"):
        Config.build(overrides={name: 2**31})


def test_a_number_in_a_list_is_bounded_too() -> None:
    with pytest.raises(ConfigError, match=r"model\.network\.encoder\.windows=1000000: expected at most 512$"):
        Config.build(overrides={"windows": [2, 1_000_000]})


@pytest.mark.parametrize(
    ("system", "name"),
    [("label-query", "capsule_size"), ("label-query", "encoder.filters"), ("kim-cnn", "embedding_size")],
)
def test_sizes_of_a_network_are_bounded(system: str, name: str) -> None:
    Config.build("labels", system, overrides={name: 2**14})
    with pytest.raises(ConfigError, match=rf"model\.{name}=16385: expected at most 16,384$"):
        Config.build("labels", system, overrides={name: 2**14 + 1})


def test_settings_of_a_hybrids_network_are_named_as_they_can_be_set() -> None:
    too_wide = {"network": "paper", "windows": [400], "embedding_size": 300}
    with pytest.raises(ConfigError, match=r"^windows=\[400\]: .* embedding_size=300$"):
        Config.build(overrides=too_wide)
    other = {"network": "convolution-linear", "encoder": "bilstm"}
    with pytest.raises(ConfigError, match=r"^encoder='bilstm': 'convolution-linear' needs"):
        Config.build(overrides=other)


def test_numbers_are_bounded_as_they_are_when_a_model_is_opened() -> None:
    for name, value in (("max_grad_norm", 1e10), ("learning_rate", 1e300), ("iterations", 1_001)):
        with pytest.raises(ConfigError, match=rf"{name}=.*: expected at most"):
            Config.build(overrides={name: value})
    with pytest.raises(ConfigError, match=r"windows: 65 values; expected at most 64"):
        Config.build(overrides={"windows": [1] * 65})


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 10_000, "{a = " * 10_000, "1\nother = 2"])
def test_a_value_that_toml_cannot_hold_is_a_word(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"training\.epochs=.{0,120}: (input should be a valid|unable to parse)"
    ):
        Config.build(assignments=[f"epochs={text}"])


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.epochs=int \(too long to show\)"):
        Config.build(overrides={"epochs": 10**5_000})


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 10_000, "x" * 2_000_000])
def test_a_file_that_toml_cannot_hold_is_refused(tmp_path, text: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"a\.toml: not a"):
        Config.build(file=tmp_path / "a.toml")


def test_what_a_validator_raises_is_said_in_its_own_words() -> None:
    config = json.loads(Config.build().model_dump_json())
    for name, message in (
        ("labl-query", r"^unknown model 'labl-query': did you mean"),
        (3, "^model.name=3: "),
    ):
        with pytest.raises(ConfigError, match=message):
            Config.from_json(json.dumps({**config, "model": {**config["model"], "name": name}}))


def test_a_name_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"text\.vectors='caf\\udce9': expected UTF-8; rename"):
        Config.build(overrides={"vectors": "caf\udce9"})
