"""`train --resume` on a damaged checkpoint: it ends with the same model, or is refused in words."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
from byte_faults import damaged
from folder_faults import ODD_VALUES, _edit_array, _some_place
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tiny_runs import fit_documents, tiny_config
from toy_task import PowerCutError

from nlpcapsule.config import Config
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.progress import TrainingProgress

SHARE = 10  # a tenth of the faults: each is a training
RUNS = ["network", "hybrid", "one-vs-rest", "omikuji", "fast-xml", "pd-sparse"]
WEIGHTS = {
    "network": ["network.safetensors"],
    "hybrid": ["network.safetensors", "lexical/one-vs-rest.safetensors"],
}
WEIGHTS |= {"one-vs-rest": ["lexical/one-vs-rest.safetensors"], "omikuji": []}  # Omikuji takes no seed
WEIGHTS |= {"fast-xml": ["lexical/fast_xml.safetensors"], "pd-sparse": ["lexical/pd_sparse.safetensors"]}


def run_config(name: str) -> Config:
    short = {"text.max_tokens": 20}
    if name in ("network", "hybrid"):
        lexical = {} if name == "network" else {"lexical": "one-vs-rest"}
        often = {"training.epochs": 2, "training.checkpoint_epochs": 0.01}  # after every step
        return tiny_config(**short, **often, **lexical)
    if name in ("fast-xml", "omikuji"):
        return Config.build("labels", name, overrides={**short, "model.trees": 3})
    return Config.build("labels", name, overrides=short)


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    """The name of a run, a folder in which it was cut short, and one in which it was not."""
    name = request.param
    for package in {"omikuji": ["omikuji"], "fast-xml": ["numba"], "pd-sparse": ["numba"]}.get(name, []):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("runs")
    fit_documents(folder / "whole", run_config(name))
    done = 0

    def cut(kind, method, after):
        original = getattr(kind, method)

        def counted(*arguments, **options):
            nonlocal done
            done += 1
            if done > after:
                raise PowerCutError
            return original(*arguments, **options)

        patch.setattr(kind, method, counted)

    with pytest.MonkeyPatch.context() as patch:
        if name in ("network", "hybrid"):
            cut(LabelTask, "loss", 6)  # in the second epoch
        else:
            cut(TrainingProgress, "parts", 2)
        with pytest.raises(PowerCutError):
            fit_documents(folder / "cut", run_config(name))
    return name, folder / "cut", folder / "whole"


def damage(folder: Path, generator: random.Random) -> str:
    """Damage one file of a checkpoint, and say how."""
    files = sorted(path for path in (folder / "checkpoint").rglob("*") if path.is_file())
    path = generator.choice(files)
    name = path.relative_to(folder).as_posix()
    kind = generator.choice(["bytes", "bytes", "value", "remove"])
    if kind == "remove":
        path.unlink()
        return f"{name}: removed"
    if kind == "value" and path.suffix == ".json":
        value = json.loads(path.read_text(encoding="utf-8"))
        holder, key = _some_place(value, generator)
        holder[key] = generator.choice(ODD_VALUES)
        path.write_text(json.dumps(value), encoding="utf-8")
        return f"{name}: {key} is {str(holder[key])[:40]!r}"
    if kind == "value" and path.suffix == ".safetensors":
        arrays = load_file(path)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
        what, _ = _edit_array(arrays, generator.choice(sorted(arrays)), generator)
        save_file(arrays, path, metadata=generator.choice([metadata, None]))
        return f"{name}: {what}"
    content, how = damaged(path.read_bytes(), generator)
    path.write_bytes(content)
    return f"{name}: {how}"


def test_a_damaged_checkpoint_is_repeated_or_refused(run, child, fault_count, tmp_path):
    name, cut, whole = run
    config = run_config(name).model_dump(mode="json")
    problems, refused = [], 0
    for number in range(max(2, fault_count // SHARE // len(RUNS))):
        folder = tmp_path / "model"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(cut, folder)
        what = damage(folder, random.Random(f"{name} {number}"))
        outcome = child.run(action="resume", folder=str(folder), config=config)
        if outcome.problem is not None:
            problems.append(f"{number}, {what}: {outcome.problem}")
        elif outcome.refused is not None:
            refused += 1
        elif any((folder / file).read_bytes() != (whole / file).read_bytes() for file in WEIGHTS[name]):
            problems.append(f"{number}, {what}: it ended with other weights")
    assert not problems, "\n".join(problems)


def test_an_undamaged_checkpoint_ends_with_the_same_weights(run, child, tmp_path):
    name, cut, whole = run
    shutil.copytree(cut, tmp_path / "model")
    config = run_config(name).model_dump(mode="json")
    outcome = child.run(action="resume", folder=str(tmp_path / "model"), config=config)
    assert outcome == (None, None)
    for file in WEIGHTS[name]:
        assert (tmp_path / "model" / file).read_bytes() == (whole / file).read_bytes(), file
