"""The demo: every step on the embedded sample, from text to tables, examples and a page of curves."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nlpcapsule import __version__
from nlpcapsule.atomic_files import write_text
from nlpcapsule.config import DEFAULT_SYSTEM, Config
from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.diagnostics import plots
from nlpcapsule.diagnostics.demo_tables import COLUMNS, demo_tables
from nlpcapsule.diagnostics.inspection import inspect_routing
from nlpcapsule.diagnostics.report_page import DemoReport, ExampleDocument, ExampleQuestion, report_html
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model
from nlpcapsule.provenance import provenance
from nlpcapsule.sample import load_documents, load_questions, write_sample
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import PreparedLabels, prepare_labels
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


@dataclass
class Demo:
    """Output folder and messages of the demo."""

    folder: Path
    console: Console
    progress: TrainingProgress

    def train_labels(self, data: PreparedLabels, name: str) -> LabelModel:
        """Train a label system, or load the one that an earlier demo has trained on the same data."""
        config = Config.build("labels", name, overrides={**_SHARED, **LABEL_SYSTEMS[name]})
        path = self.folder / "models" / name
        model = _trained_before(path, config, data.fingerprint())
        return model or fit_labels(data, config, _run_folder(path), self.progress)

    def train_answers(self, train: list[Question], dev: list[Question], name: str) -> AnswerModel:
        """Train an answer system, or load the one that an earlier demo has trained on the same data."""
        config = Config.build("answers", name, overrides=ANSWER_SYSTEMS[name])
        data = prepare_answers(train, dev, config)
        path = self.folder / "models" / f"answers-{name}"
        model = _trained_before(path, config, data.fingerprint())
        return model or fit_answers(data, config, _run_folder(path), self.progress)


def run_demo(folder: Path, quiet: bool = False, compare: bool = False) -> dict[str, Any]:
    """Train the default on the embedded sample, show its results and write report.html into a folder.

    `compare` also trains the networks it is compared with. Returns all metrics, as in results.json.
    """
    started = time.perf_counter()
    console = Console()
    write_sample(folder / "data")
    train = load_documents("train")
    with TrainingProgress(quiet) as progress:
        demo = Demo(folder, console, progress)
        config = Config.build("labels", overrides=_SHARED)
        data = prepare_labels(train, load_documents("dev"), config)
        for note in data.notes:
            progress.say(note)
        data = replace(data, notes=())  # said once, not for every system
        chosen = LABEL_SYSTEMS if compare else [DEFAULT_SYSTEM["labels"]]
        models = {name: demo.train_labels(data, name) for name in chosen}
        questions = {part: load_questions(part) for part in ("train", "dev", "test")}
        rankers = {
            name: demo.train_answers(questions["train"], questions["dev"], name)
            for name in ANSWER_SYSTEMS
            if compare or name == DEFAULT_SYSTEM["answers"]
        }
    label_tables = {
        title: {name: evaluate_labels(model, load_documents(part)) for name, model in models.items()}
        for part, title in TEST_PARTS.items()
    }
    answers = {name: model.evaluate(questions["test"]) for name, model in rankers.items()}
    for table in demo_tables(label_tables, answers):
        console.print(table)

    ours = models[DEFAULT_SYSTEM["labels"]]
    examples = example_documents(ours, [*load_documents("test-seen")[:2], *load_documents("test-unseen")[:1]])
    answered = example_questions(rankers[DEFAULT_SYSTEM["answers"]], questions["test"][:3])
    for text in [*map(_document_lines, examples), *map(_question_lines, answered[:2])]:
        console.print(text, highlight=False, markup=False)
    seconds = time.perf_counter() - started
    report = DemoReport(
        label_tables={
            title: {name: {key: row[key] for key in COLUMNS} for name, row in rows.items()}
            for title, rows in label_tables.items()
        },
        answer_figures=answers,
        documents=tuple(examples),
        questions=tuple(answered),
        figures=_curves(folder, models),
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


def evaluate_labels(model: LabelModel, documents: list[Document]) -> dict[str, float]:
    """Return all metrics of a label model on documents."""
    return model.evaluate(
        encode_documents(documents, model.tokenizer, model.labels, model.config.text.max_tokens)
    )


def example_documents(model: LabelModel, documents: list[Document]) -> list[ExampleDocument]:
    """Return documents with their labels and the model's best five."""
    ranked = model.rank([document.text for document in documents], 5)
    return [
        ExampleDocument(document.text, document.labels, tuple((row.label, row.score) for row in rows))
        for document, rows in zip(documents, ranked, strict=True)
    ]


def example_questions(model: AnswerModel, questions: list[Question]) -> list[ExampleQuestion]:
    """Return questions with the model's ranking of their candidates."""
    return [
        ExampleQuestion(
            question.text,
            tuple((row.answer, row.score, question.candidates[row.position].label == 1) for row in rows),
        )
        for question, rows in zip(questions, model.rank(questions), strict=True)
    ]


def _trained_before(path: Path, config: Config, fingerprint: str) -> Any:
    """Load the model of an earlier demo with the same settings and data; remove anything else."""
    if not (path / "manifest.json").exists():
        return None
    with suppress(ModelFolderError):  # of an older version, or damaged
        model = load_model(path)
        if model.config == config and model.facts.data == fingerprint:
            return model
    shutil.rmtree(path)
    return None


def _run_folder(path: Path) -> RunFolder:
    return RunFolder(path, resume=(path / "checkpoint" / "run.json").exists())


def _curves(folder: Path, models: dict[str, LabelModel]) -> dict[str, str]:
    """Return training curves of all systems, and the paper's two routing curves of the default."""
    histories = {
        name: [
            json.loads(line)
            for line in (folder / "models" / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        for name in models
    }
    seen = inspect_routing(models[DEFAULT_SYSTEM["labels"]], load_documents("test-unseen"))
    curves = {"Dev nDCG@5 by epoch": plots.training_curves(histories, "nDCG@5")}
    if seen.loss_by_iterations:
        curves["System level: loss by number of iterations"] = plots.system_curve(seen.loss_by_iterations)
    if seen.instance_agreement is not None:
        curves["Instance level: agreement of one document by iteration"] = plots.instance_curve(
            seen.instance_agreement, seen.instance_stop, seen.most_iterations
        )
    if seen.iterations is not None:
        curves["Iterations each document took"] = plots.iterations_histogram(seen.iterations)
    return curves


def _document_lines(example: ExampleDocument) -> str:
    ranked = ", ".join(
        f"{label} {score:.2f}{' (right)' if label in example.true_labels else ''}"
        for label, score in example.predicted
    )
    return f"\n{example.text}\n  its labels: {', '.join(example.true_labels)}\n  found: {ranked}"


def _question_lines(example: ExampleQuestion) -> str:
    answers = (
        f"  {score:.2f}{' (right)' if is_right else ''}  {answer}"
        for answer, score, is_right in example.ranking[:3]
    )
    return "\n".join([f"\n{example.question}", *answers])
