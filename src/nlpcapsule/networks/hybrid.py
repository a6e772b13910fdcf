"""`hybrid`: a network and a lexical system, fused. The default for labels.

The lexical system nominates candidates, and the network routes to them. `scoring.fusion` combines both scores
and the labels of similar training documents, with weights fitted to held-out documents. If there are too few
of these and `lexical` is "auto", the network is used alone.
"""

from typing import Any, Literal

from pydantic import Field

from nlpcapsule.config import Config
from nlpcapsule.config.nesting import AnyNetwork
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.errors import ConfigError
from nlpcapsule.networks.label_query import LabelQuerySettings
from nlpcapsule.registry import NetworkInputs, System, find_system, register


class HybridSettings(SystemSettings):
    """`hybrid`: a network and a lexical system, combined by weights fitted to held-out documents."""

    name: Literal["hybrid"] = "hybrid"
    network: AnyNetwork = Field(
        default_factory=LabelQuerySettings,
        description="the network: a section, or the name of a network that scores candidates",
    )
    lexical: Literal["auto", "one-vs-rest", "omikuji"] = Field(
        "auto",
        description="the lexical system that nominates candidates; auto: one-vs-rest",
    )

    def check(self, config: Config) -> None:
        """Reject a network that cannot score the candidates of a lexical system."""
        if not self.network.scores_candidates:
            raise ConfigError(
                f"model.network={self.network.name!r} does not score chosen labels, which a hybrid needs: "
                "use one such as 'label-query' or 'paper'"
            )
        self.network.check(config)


def _build(settings: HybridSettings, inputs: NetworkInputs) -> Any:
    build = find_system(settings.network.name).labels
    assert build is not None
    return build(settings.network, inputs)


# Fusion weights are fitted to documents that neither part was trained on.
_DEFAULTS = {"labels": {"training": {"dev_fraction": 0.1}}}

register(System("hybrid", HybridSettings, labels=_build, defaults=_DEFAULTS))
