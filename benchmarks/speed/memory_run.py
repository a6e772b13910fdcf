"""Train a hybrid for a few steps; standard error names each stage, for the process that samples memory.

It does what `nlpcapsule train` does, but for the steps of an epoch.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nlpcapsule.cli.files import RowFile
from nlpcapsule.config import Config
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.threads import use_threads
from nlpcapsule.training.fit_labels import NetworkTraining, label_network
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.plan import time_steps
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

STAGE = "stage: "
_STEPS = 20


def run(train: str, output: Path, threads: int) -> None:
    """Prepare documents, fit, nominate, train for a few steps, tune and save."""
    use_threads(threads)
    config = Config.build(overrides={"negatives": "hard"}, preset="small")
    _say("reading")
    data = prepare_labels(RowFile(train, ReadOptions()), None, config)
    folder = RunFolder(output)
    folder.begin(config, data.fingerprint())
    with TrainingProgress(quiet=True) as progress:
        training = NetworkTraining(data, config, folder, progress, None, None)
        network = label_network(config, data)
        _say("lexical system")
        training.fit_nominators()
        _say("candidates")
        negatives, nominated = training.hard_negatives(), training.dev_candidates()
        task = LabelTask(
            config, data.train, data.dev, data.labels, data.tokenizer.padding_id, train_candidates=negatives
        )
        _say("steps")
        time_steps(network, task, config.training, _STEPS)
        _say("fusion")
        model = training.tune(training.model_of(network.eval(), []), network, nominated)
        _say("saving")
        folder.finish(model)


def _say(stage: str) -> None:
    print(f"{STAGE}{stage}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
