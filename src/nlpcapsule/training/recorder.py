"""Record a run's history: metrics.jsonl and, if wanted, TensorBoard curves."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nlpcapsule.atomic_files import write_text
from nlpcapsule.errors import MissingExtraError
from nlpcapsule.training.shared_work import this_process


class Recorder:
    """Write the training history of a "network" or a "nominator" into the model folder."""

    def __init__(self, folder: Path, name: str = "network", tensorboard: bool = False) -> None:
        self.path = folder / ("metrics.jsonl" if name == "network" else f"{name}-metrics.jsonl")
        self.events = None
        if tensorboard and this_process().is_main_process:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise MissingExtraError("tensorboard", "tensorboard") from None
            self.events = SummaryWriter(str(folder / "tensorboard" / name))

    def record(self, history: Sequence[dict[str, Any]]) -> None:
        """Rewrite the whole history, so that a resumed run repeats no line."""
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in history))
        if self.events is not None:
            for name, value in history[-1].items():
                if isinstance(value, int | float):
                    self.events.add_scalar(name.replace("@", "_at_"), value, history[-1]["epoch"])
            self.events.flush()
