"""Settings of PECOS XR-Linear, and how to install it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field, ValidationError

from nlpcapsule.config.configuration import toml_value
from nlpcapsule.config.settings import Settings
from nlpcapsule.errors import ConfigError, did_you_mean

PECOS = "pecos"
PECOS_PYTHON = "NLPCAPSULE_PECOS_PYTHON"  # environment variable
INSTALL = (
    "python3.11 -m venv pecos-venv && pecos-venv/bin/pip install 'libpecos==1.2.8' 'numpy<2', then "
    "--pecos-python pecos-venv/bin/python"
)


class PecosSettings(Settings):
    """XR-Linear (Yu et al. 2022): a tree of label clusters, a linear model per node; on our tf-idf."""

    max_tokens: int = Field(1000, ge=1, description="maximum tokens of a document")
    splits: int = Field(16, ge=2, description="children of a node")
    largest_leaf: int = Field(100, ge=2, description="maximum labels in a leaf")
    C: float = Field(1.0, gt=0, description="weight of the loss; larger values regularise less")
    smallest_weight: float = Field(0.1, ge=0, description="weights below this are dropped")
    beam: int = Field(10, ge=1, description="nodes kept per level when ranking")

    @classmethod
    def parse(cls, assignments: Sequence[str]) -> Self:
        """Parse settings from strings such as "beam=20"."""
        values = {}
        for text in assignments:
            key, _, value = (part.strip() for part in text.partition("="))
            key = key.removeprefix("model.").removeprefix("text.")
            if key not in cls.model_fields:
                raise ConfigError(
                    f"--set, {PECOS}: unknown setting {key!r}: {did_you_mean(key, cls.model_fields)}"
                )
            values[key] = toml_value(value)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(
                f"--set, {PECOS}: {first['loc'][0]}={first['input']!r}: {first['msg'].lower()}"
            ) from None
