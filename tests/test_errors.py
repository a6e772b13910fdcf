"""Messages that say what is wrong, where, and what to do."""

import numpy as np
import pytest
import torch

from nlpcapsule.errors import (
    BadRowError,
    ConfigError,
    DataError,
    MissingExtraError,
    ModelFolderError,
    NlpCapsuleError,
    did_you_mean,
    out_of_memory,
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no label",), "no label"),
        (("no label", "a.csv"), "a.csv: no label"),
        (("no label", "a.csv", 3), "a.csv, line 3: no label"),
        (("no label", "a.csv", 3, "add one"), "a.csv, line 3: no label; add one"),
        (("no label", None, None, "add one"), "no label; add one"),
    ],
)
def test_a_data_error_names_the_place_as_far_as_it_is_known(arguments, message):
    assert str(DataError(*arguments)) == message


def test_a_data_error_keeps_its_parts():
    error = BadRowError("no label", "a.csv", 3, "add one")
    assert (error.problem, error.path, error.line, error.hint) == ("no label", "a.csv", 3, "add one")


def test_a_near_miss_gets_a_suggestion():
    assert did_you_mean("epoch", ["epochs", "seed"]) == "did you mean 'epochs'?"


def test_a_far_miss_gets_the_names_there_are():
    assert did_you_mean("zzz", ["seed", "epochs"]) == "expected one of: epochs, seed"


def test_a_missing_extra_says_what_to_install():
    message = str(MissingExtraError("tensorboard", "tensorboard"))
    assert "pip install 'nlpcapsule[tensorboard]'" in message


@pytest.mark.parametrize(
    "kind",
    [DataError, BadRowError, ConfigError, ModelFolderError, MissingExtraError],
    ids=lambda k: k.__name__,
)
def test_every_error_can_be_caught_as_one(kind):
    assert issubclass(kind, NlpCapsuleError)


@pytest.mark.parametrize("kind", [DataError, BadRowError, ConfigError])
def test_an_error_about_a_value_is_a_value_error(kind):
    assert issubclass(kind, ValueError)
    assert issubclass(kind, NlpCapsuleError)


def raised_by(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("no error")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        raised_by(lambda: np.zeros(10**17)),
        raised_by(lambda: torch.zeros(10**17)),
        raised_by(lambda: torch.zeros(10**18, 10**18)),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
        RuntimeError("CUDA error: out of memory"),
        OSError(12, "Cannot allocate memory"),
    ],
    ids=["Python", "numpy", "torch", "torch's sizes", "CUDA", "a full GPU", "the system"],
)
def test_memory_that_ran_out_is_one_message_whoever_noticed_it(error):
    message = out_of_memory(error)
    assert message.startswith("out of memory")
    assert "\n" not in message
    assert "; lower batch_size" in message


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes do not fit"), ValueError("x"), OSError(28, "No space")]
)
def test_other_errors_are_not_about_memory(error):
    assert out_of_memory(error) is None
