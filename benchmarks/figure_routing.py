"""`figure-routing`: the paper's two routing curves, and how many iterations documents take.

System level: the training loss of a trained network when every document gets the same number of iterations.
Instance level: the agreement score (NAS) of one document, iteration by iteration.

A trained network is kept as a model folder, with its inspection as a JSON file next to it. Both are reused,
and a stopped training is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.encoded_parts import EncodedParts
from benchmarks.inspection_record import InspectionRecord
from benchmarks.label_data import label_parts
from benchmarks.run_here import run_here
from benchmarks.run_missing import run_missing
from benchmarks.table import COMMAND, Options, Table
from nlpcapsule import __version__
from nlpcapsule.compare.comparison import raise_failures
from nlpcapsule.compare.table import Record
from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.errors import ConfigError, NlpCapsuleError, did_you_mean
from nlpcapsule.evaluation.report import markdown_table
from nlpcapsule.model_folder import load_model
from nlpcapsule.provenance import checked_out_commit, hardware, provenance
from nlpcapsule.report.plots import instance_curve, iterations_histogram, system_curve
from nlpcapsule.report.routing import inspect_encoded
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

SYSTEMS = ("paper", "label-query")
DATA = {"full": "eurlex15k", "smoke": "sample"}
_TRAINED: dict[str, Any] = {
    "routing": "adaptive-kde",
    "max_tokens": 500,
    "training.epochs": 20,
    "training.batch_size": 64,
    "learning_rate": 2e-3,
    "negatives": "batch",
}
FULL: dict[str, dict[str, Any]] = {
    "paper": {"routing": "adaptive-kde", "training.epochs": 20},  # its defaults, as in the tables
    "label-query": _TRAINED,
}
_SMOKE: dict[str, Any] = {
    **_TRAINED,
    "max_tokens": 40,
    "training.epochs": 6,
    "training.batch_size": 16,
    "learning_rate": 5e-3,
    "embedding_size": 24,
    "filters": 8,
}
SMOKE: dict[str, dict[str, Any]] = {
    "paper": {**_SMOKE, "condensed": 16, "candidates": 10},
    "label-query": {**_SMOKE, "condensed": 8, "capsule_size": 16, "document_size": 16},
}
LOSS_DOCUMENTS = 300  # training documents of the system-level curve
COUNTED_DOCUMENTS = 1_000  # documents of the report part whose iterations are counted
_INSTANCE = 0  # the report part's first document
_SEED = 1


def routing_settings(system: str, budget: str, on_gpu: bool) -> dict[str, Any]:
    """Return the settings of a network that differ from its defaults.

    Args:
        system: "paper" or "label-query".
        budget: "full" or "smoke".
        on_gpu: Whether it is trained on a GPU, in bf16.
    """
    settings = (FULL if budget == "full" else SMOKE)[system]
    return {**settings, "training.seed": _SEED, "precision": "bf16" if on_gpu else "float32"}


def make_figure_routing(options: Options) -> Record:
    """Train and inspect missing networks, if requested, and summarise the finished inspections."""
    for name in options.systems:
        if name not in SYSTEMS:
            raise ConfigError(f"figure-routing has no system {name!r}: {did_you_mean(name, SYSTEMS)}")
    folder = options.cells / "figure-routing"
    if options.run:
        _run_missing([name for name in SYSTEMS if name in (options.systems or SYSTEMS)], folder, options)
    cells = {name: _finished(name, folder, options.budget) for name in SYSTEMS}
    budget = "" if options.budget == "full" else f" --budget {options.budget}"
    data = "" if options.data is None else " --data DIR"
    found = {name: cell for name, cell in cells.items() if cell is not None}
    return {
        "table": "figure-routing",
        **provenance(f"{COMMAND} figure-routing{data}{budget}", commit=options.commit),
        "data": {name: cell.data for name, cell in found.items()},
        "seeds": [_SEED],
        "title": "What routing iterations are worth",
        "smoke": options.budget == "smoke",
        "trained on": DATA[options.budget],
        "planned": list(SYSTEMS),
        "systems": {name: cell.to_json() for name, cell in found.items()},
    }


def _run_missing(systems: Sequence[str], folder: Path, options: Options) -> None:
    parts = cache(lambda: label_parts(DATA[options.budget], options.data, options.output / "data"))

    def inspect(system: str) -> None:
        settings = routing_settings(system, options.budget, torch.cuda.is_available())
        record = inspect_trained(parts(), system, settings, folder / system)
        commit = options.commit or checked_out_commit()
        replace(record, commit=commit).save(folder / f"{system}.json")

    def is_finished(system: str) -> bool:
        return _finished(system, folder, options.budget) is not None

    runs = [run_here(system, partial(is_finished, system), partial(inspect, system)) for system in systems]
    raise_failures(
        run_missing(runs, "networks", options.say),
        "networks failed, the others are kept; the same command tries again",
    )


def _finished(system: str, folder: Path, budget: str) -> InspectionRecord | None:
    """Return the record of a network, if it was trained with these settings on the same kind of device."""
    path = folder / f"{system}.json"
    if not path.exists():
        return None
    record = InspectionRecord.from_json(json.loads(path.read_text(encoding="utf-8")))
    wanted = [routing_settings(system, budget, on_gpu) for on_gpu in (False, True)]
    return record if record.settings in wanted else None


def inspect_trained(
    parts: EncodedParts, model: str, settings: dict[str, Any], folder: Path
) -> InspectionRecord:
    """Train a network, unless its folder already holds it, and inspect its routing.

    Args:
        parts: The data.
        model: The network's name.
        settings: Settings that differ from the network's defaults.
        folder: The model folder.
    """
    config = Config.build("labels", model, overrides=settings)
    train, select, report = (
        EncodedDocuments(part.tokens.cut(config.text.max_tokens), part.labels)
        for part in (parts.train, parts.select, parts.report)
    )
    data = PreparedLabels(parts.tokenizer, parts.labels, train, select, parts.vectors)
    trained = _trained(data, config, folder)
    losses = inspect_encoded(trained, _first(train, LOSS_DOCUMENTS))
    counted = _first(report, COUNTED_DOCUMENTS)
    seen = inspect_encoded(trained, counted, _INSTANCE, with_losses=False)
    assert seen.iterations is not None  # all networks here route,
    assert seen.instance_agreement is not None  # and by agreement
    return InspectionRecord(
        model=model,
        settings=settings,
        routing=seen.routing,
        most_iterations=seen.most_iterations,
        loss_by_iterations={str(number): loss for number, loss in losses.loss_by_iterations.items()},
        instance_agreement=[float(score) for score in seen.instance_agreement],
        instance_stop=seen.instance_stop,
        documents_by_iterations=np.bincount(seen.iterations).tolist(),
        loss_documents=f"the first {min(LOSS_DOCUMENTS, len(train)):,} training documents",
        counted_documents=f"the first {len(counted):,} documents of the report part",
        labels_routed_to=config.inference.candidates or len(parts.labels),
        epochs=trained.facts.epochs_run or 0,
        selected_on=trained.facts.dev or {},
        config=json.loads(config.model_dump_json()),
        data=parts.fingerprint(),
        hardware=hardware(),
        version=__version__,
    )


def _trained(data: PreparedLabels, config: Config, folder: Path) -> LabelModel:
    place = RunFolder(folder, resume=folder.exists() and any(folder.iterdir()))
    if not place.finished:
        with TrainingProgress() as progress:
            return fit_labels(data, config, place, progress)
    model = load_model(folder)
    assert isinstance(model, LabelModel)  # nothing else is trained here
    if model.config != config or model.facts.data != data.fingerprint():
        raise NlpCapsuleError(
            f"{folder}: this network was trained with other settings or on other data; remove the folder to "
            "train it again"
        )
    return model


def _first(part: EncodedDocuments, count: int) -> EncodedDocuments:
    return part.take(range(min(count, len(part))))


def figure_markdown(record: Record) -> str:
    """Return both curves as tables, with an explanation."""
    blocks = [f"# {record['title']}\n"]
    if record["smoke"]:
        blocks.append("Small networks, hardly trained: this shows that the figure can be made, no more.\n")
    for name in record["planned"]:
        system = record["systems"].get(name)
        blocks += [f"## {name}\n", "Not run yet.\n" if system is None else _system_markdown(system)]
    blocks.append(_reading_aid(record))
    return "\n".join(blocks)


def _system_markdown(system: Record) -> str:
    losses, scores = system["loss by iterations"], system["agreement of one document"]
    counts = system["documents by iterations"]
    rows = [
        {
            "iterations": str(number),
            "loss per document": f"{losses[str(number)]:.4f}" if str(number) in losses else "",
            "NAS of one document": f"{round(score, 4) + 0.0:.4f}",  # never "-0.0000"
            "documents that stop": f"{counts[number]:,}" if number < len(counts) else "",
        }
        for number, score in enumerate(scores, start=1)
    ]
    return (
        f"{markdown_table(list(rows[0]), rows)}\n"
        f"At most {system['most iterations']} iterations; the document of the curve stops after "
        f"{system['that document stops after']}. The loss is that of {system['loss is of']} over "
        f"{system['labels routed to']:,} labels each; iterations are counted on "
        f"{system['iterations are of']}. Trained for {system['epochs']} epochs (P@1 "
        f"{100 * system['selected on']['P@1']:.2f}% on the documents epochs are selected on).\n"
    )


def _reading_aid(record: Record) -> str:
    places = sorted({system["hardware"] for system in record["systems"].values()})
    return (
        "System level: the loss of one trained network when all documents get the same number of iterations. "
        "Instance level: the agreement score of the report part's first document when it may not stop; a "
        "document stops when its score moves by less than ε. The paper gives no numbers with its two curves; "
        "it says that five iterations lead to a lower training loss, and that one example has not converged "
        "by then. It does not say whether its networks were also trained with these iterations; ours is one "
        "network, trained adaptively.\n\n"
        f"Made by `{record['command']}` on {'; '.join(places) or 'no machine yet'}; trained on "
        f"{record['trained on']}.\n"
    )


def figure_plots(record: Record) -> dict[str, str]:
    """Draw three plots of each network."""
    pictures = {}
    for name, system in record["systems"].items():
        losses = {int(number): loss for number, loss in system["loss by iterations"].items()}
        counts = system["documents by iterations"]
        pictures[f"figure-routing-{name}-loss"] = system_curve(losses)
        pictures[f"figure-routing-{name}-agreement"] = instance_curve(
            np.array(system["agreement of one document"]),
            system["that document stops after"],
            system["most iterations"],
        )
        pictures[f"figure-routing-{name}-iterations"] = iterations_histogram(
            np.repeat(np.arange(len(counts)), counts)
        )
    return pictures


FIGURE_ROUTING = Table("figure-routing", make_figure_routing, figure_markdown, figure_plots)
