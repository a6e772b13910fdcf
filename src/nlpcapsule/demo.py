"""The demo: every step on the embedded sample, from text to tables, examples and a page of curves."""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nlpcapsule import __version__
from nlpcapsule.atomic_files import write_text
from nlpcapsule.config import DEFAULT_SYSTEM, Config
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model
from nlpcapsule.provenance import provenance
from nlpcapsule.report.demo_page import (
    COLUMNS,
    DemoReport,
    demo_curves,
    demo_tables,
    example_documents,
    example_questions,
    report_html,
)
from nlpcapsule.report.routing import inspect_routing
from nlpcapsule.sample import load_documents, load_questions, write_sample
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

# Small enough for two cores and four minutes; all systems use the same words and schedule.
_SHARED = {"max_tokens": 90, "training.batch_size": 32, "learning_rate": 2e-3}
LABEL_SYSTEMS: dict[str, dict[str, Any]] = {
    "kim-cnn": {"training.epochs": 20},
    "xml-cnn": {"training.epochs": 20},
    "paper": {
        "training.epochs": 10,
        "embedding_size": 100,
        "condensed": 32,
        "word_dropout": 0.1,
        "token_dropout": 0.2,
    },
    # Narrow filters and word dropout: chosen on training letters with some phrasings held out.
    "hybrid": {
        "training.epochs": 20,
        "windows": (1, 3),
        "filters": 96,
        "capsule_size": 96,
        "condensed": 32,
        "document_size": 0,
        "word_dropout": 0.2,
        "routing": "adaptive-kde",  # shows how documents differ
    },
}
_SHORT = {"max_tokens": 48, "training.batch_size": 16}
ANSWER_SYSTEMS: dict[str, dict[str, Any]] = {
    "paper": {**_SHORT, "training.epochs": 10, "embedding_size": 100, "capsule_size": 64},
    "label-query": {**_SHORT, "training.epochs": 20, "condensed": 16},
}
TEST_PARTS = {"test-seen": "phrasings seen in training", "test-unseen": "phrasings training never saw"}


def run_demo(folder: Path, quiet: bool = False, compare: bool = False) -> dict[str, Any]:
    """Train the default on the embedded sample, show its results and write report.html into a folder.

    `compare` also trains the networks it is compared with. Returns all metrics, as in results.json.
    """
    started = time.perf_counter()
    console = Console()
    write_sample(folder / "data")
    train = load_documents("train")
    with TrainingProgress(quiet) as progress:
        config = Config.build("labels", overrides=_SHARED)
        data = prepare_labels(train, load_documents("dev"), config)
        for note in data.notes:
            progress.say(note)
        data = replace(data, notes=())  # said once, not for every system
        models, rankers = {}, {}
        for name in LABEL_SYSTEMS if compare else [DEFAULT_SYSTEM["labels"]]:
            own = Config.build("labels", name, overrides={**_SHARED, **LABEL_SYSTEMS[name]})
            models[name] = _trained(folder / "models" / name, own, data, fit_labels, progress)
        questions = {part: load_questions(part) for part in ("train", "dev", "test")}
        for name in ANSWER_SYSTEMS if compare else [DEFAULT_SYSTEM["answers"]]:
            own = Config.build("answers", name, overrides=ANSWER_SYSTEMS[name])
            prepared = prepare_answers(questions["train"], questions["dev"], own)
            path = folder / "models" / f"answers-{name}"
            rankers[name] = _trained(path, own, prepared, fit_answers, progress)
    label_tables = {
        title: {
            name: model.evaluate(model.encode_documents(load_documents(part)))
            for name, model in models.items()
        }
        for part, title in TEST_PARTS.items()
    }
    answers = {name: model.evaluate(questions["test"]) for name, model in rankers.items()}
    for table in demo_tables(label_tables, answers):
        console.print(table)

    ours = models[DEFAULT_SYSTEM["labels"]]
    unseen = load_documents("test-unseen")
    examples = example_documents(ours, [*load_documents("test-seen")[:2], *unseen[:1]])
    answered = example_questions(rankers[DEFAULT_SYSTEM["answers"]], questions["test"][:3])
    for example in [*examples, *answered[:2]]:
        console.print(str(example), highlight=False, markup=False)
    seconds = time.perf_counter() - started
    report = DemoReport(
        label_tables={
            title: {name: {key: row[key] for key in COLUMNS} for name, row in rows.items()}
            for title, rows in label_tables.items()
        },
        answer_figures=answers,
        documents=examples,
        questions=answered,
        figures=demo_curves(_histories(folder, models), inspect_routing(ours, unseen)),
        facts={
            "nlpcapsule": __version__,
            "training documents": f"{len(data.train):,}",
            "labels": f"{len(data.labels):,}",
            "training questions": f"{len(questions['train']):,}",
            "words read per document": str(config.text.max_tokens),
            "seed": str(config.training.seed),
            "seconds": f"{seconds:.0f}",
        },
    )
    write_text(folder / "report.html", report_html(report))
    command = f"nlpcapsule demo{' --compare' if compare else ''}"
    figures = {
        **provenance(command, data=data.fingerprint(), seeds=[config.training.seed]),
        "labels": label_tables,
        "answers": answers,
        "seconds": round(seconds, 1),
    }
    write_text(folder / "results.json", json.dumps(figures, indent=2) + "\n")
    console.print(
        f"wrote {folder / 'report.html'} after {seconds:.0f} seconds", highlight=False, soft_wrap=True
    )
    return figures


def _trained(
    path: Path, config: Config, data: Any, fit: Callable[..., Any], progress: TrainingProgress
) -> Any:
    """Train a system, or load the one that an earlier demo trained with the same settings and data."""
    if (path / "manifest.json").exists():
        with suppress(ModelFolderError):  # of an older version, or damaged
            model = load_model(path)
            if model.config == config and model.facts.data == data.fingerprint():
                return model
        shutil.rmtree(path)
    resume = (path / "checkpoint" / "run.json").exists()
    return fit(data, config, RunFolder(path, resume), progress)


def _histories(folder: Path, models: Mapping[str, LabelModel]) -> dict[str, list[dict[str, Any]]]:
    """Return what each system's training logged, epoch by epoch."""
    logs = {name: folder / "models" / name / "metrics.jsonl" for name in models}
    return {name: [json.loads(line) for line in log.open(encoding="utf-8")] for name, log in logs.items()}
