"""The Kim-CNN that nominates candidates, trained once for all cells that share it."""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path
from shutil import rmtree

from safetensors.torch import load_file, save_file
from torch import nn

from nlpcapsule.atomic_files import atomic_path
from nlpcapsule.config import Config
from nlpcapsule.config.settings import InferenceSettings
from nlpcapsule.model_folder import weights_of
from nlpcapsule.networks.build import build_network
from nlpcapsule.scoring.build import nominator_config
from nlpcapsule.training.fit_labels import needs_nominator, train_nominator
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder
from nlpcapsule.training.shared_work import this_process


def shared_nominator(
    data: PreparedLabels, config: Config, folder: Path, progress: TrainingProgress
) -> nn.Module | None:
    """Return the nominator of a configuration, or None if it needs none.

    If several processes need the same one, the first trains it and the others wait.

    Args:
        data: What to train on.
        config: The configuration of the network that uses it.
        folder: Where nominators are kept.
        progress: Receives progress.
    """
    if config.lexical is not None or not needs_nominator(config, len(data.labels)):
        return None
    # Ranking settings do not affect the training: cells that rank differently can share it.
    beside = nominator_config(config).model_copy(update={"inference": InferenceSettings()})
    told = f"{beside.model_dump_json(exclude={'inference'})}{data.fingerprint()}"
    place = folder / hashlib.sha256(told.encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    weights = place / "nominator.safetensors"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the process ends, however it ends
        if not weights.exists():
            work = place / "work"
            resume = (work / "checkpoint" / "run.json").exists()
            if not resume:
                rmtree(work, ignore_errors=True)  # of a run that was stopped before its first checkpoint
            run = RunFolder(work, resume)
            run.begin(beside, data.fingerprint())
            trained = train_nominator(data, config, run, progress)
            with atomic_path(weights) as temporary:
                save_file(weights_of(trained), temporary)
            rmtree(work)
    tokenizer = data.tokenizer
    nominator = build_network(
        beside,
        tokenizer.size,
        label_count=len(data.labels),
        padding_id=tokenizer.padding_id,
        vectors=data.vectors,
    )
    nominator.load_state_dict(load_file(weights))
    return nominator.to(this_process().device).eval()
