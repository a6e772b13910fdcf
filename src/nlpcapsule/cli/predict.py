"""`nlpcapsule predict`."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from nlpcapsule.atomic_files import atomic_text
from nlpcapsule.cli.chunks import arriving_chunks, full_chunks
from nlpcapsule.cli.files import check_folder_name, check_output_file, say, tell_bad_rows
from nlpcapsule.cli.options import ModelFolder, Quiet, Threads, reads_data
from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.lines import is_stream
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.threads import keep_faster_torch_threads, use_threads

if TYPE_CHECKING:
    from nlpcapsule.scoring.models import AnswerModel, LabelModel, RankedLabel

TUNED = "tuned"
_LABELS = 5  # labels per document by default
_CHUNK = 2_000  # rows held at a time, which bounds memory for any number of rows
_TOP_HELP = "Maximum labels per text, or answers per question.  [default: 5 labels, all answers]"
_THRESHOLD_HELP = (
    f"Minimum score, from 0 to 1; `{TUNED}` takes the threshold that training tuned on held-out documents."
)
_UNSEEN_HELP = (
    "Also rank this many labels that no training document has; needs a model trained with --label-names."
)
_EXPLAIN_HELP = (
    "Also say why: words with their places in the text, capsules, similar documents, shares. For answers: "
    "words of question and answer, shares."
)
_SHARDS_HELP = (
    "Parts to rank in worker processes; after an interruption, the same command continues. Needs --output."
)


@reads_data(need_labels=False)
def predict(
    model: Annotated[Path, ModelFolder],
    input: Annotated[
        str, Argument(metavar="INPUT", help="Texts or questions: a file, a folder, or - for stdin.")
    ],
    reading: ReadOptions,
    top_k: Annotated[int | None, Option(metavar="NUMBER", min=1, help=_TOP_HELP)] = None,
    threshold: Annotated[str | None, Option(metavar="NUMBER", help=_THRESHOLD_HELP)] = None,
    suggest_unseen: Annotated[int, Option(metavar="NUMBER", min=0, help=_UNSEEN_HELP)] = 0,
    explain: Annotated[bool, Option("--explain", help=_EXPLAIN_HELP)] = False,
    output: Annotated[
        Path | None, Option(metavar="FILE.jsonl", help="File to write.  [default: standard output]")
    ] = None,
    threads: Threads = None,
    shards: Annotated[int | None, Option(metavar="NUMBER", min=1, help=_SHARDS_HELP)] = None,
    engine: Annotated[
        Literal["local", "ray"],
        Option(metavar="NAME", help="Where shards are ranked: local, or ray (a cluster)."),
    ] = "local",
    quiet: Quiet = False,
) -> None:
    """Predict the labels of texts, or rank the answers to questions.

    Writes one line of JSON per input row, best labels or answers first, in the order of the rows. INPUT needs
    no labels; a .txt file has one text per line. Results of a file are written when all rows are ranked,
    results of standard input or a pipe as the rows arrive.
    """
    check_folder_name(model)
    check_output_file(output, "--output", input, model)
    least = _threshold(threshold)
    use_threads(threads)
    report = ReadReport(say=say)
    if shards is not None:
        from nlpcapsule.sharding.prediction import predict_in_shards

        if output is None or is_stream(input):
            raise NlpCapsuleError("--shards needs a file or a folder as input, and a file to write: --output")
        given = {"--top-k": top_k, "--threshold": threshold, "--suggest-unseen": suggest_unseen or None}
        options = [str(part) for item in given.items() if item[1] is not None for part in item]
        options += ["--explain"] if explain else []
        tell = (lambda text: None) if quiet else say
        work: dict[str, Any] = {"engine": engine, "shards": shards, "chunk": _CHUNK, "say": tell}
        predict_in_shards(model, input, output, reading, report, options, **work)
        tell_bad_rows(input, report)
        return
    from nlpcapsule.export.prediction import load_for_prediction
    from nlpcapsule.scoring.models import LabelModel
    from nlpcapsule.training.progress import TrainingProgress

    # An exported network has no capsules to show.
    loaded = load_for_prediction(model, say, exported=not explain)
    if loaded.network is not None:
        keep_faster_torch_threads(say)
    if suggest_unseen and not (isinstance(loaded, LabelModel) and (loaded.labels.counts == 0).any()):
        raise DataError(
            "--suggest-unseen: the model knows no label that its training documents do not have",
            model,
            hint="train it with --label-names",
        )
    progress = TrainingProgress(quiet)
    chunks = arriving_chunks if is_stream(input) else full_chunks
    if isinstance(loaded, LabelModel):
        progress.start("documents", total=None)  # while they are read
        documents = chunks(read_documents(input, reading, report), _CHUNK)
        rows = _ranked_documents(
            loaded, documents, top_k or _LABELS, least, suggest_unseen, explain, progress.advance
        )
    elif isinstance(least, str):
        raise DataError("--threshold tuned is for models that rank labels", model, hint="give a number")
    else:
        progress.start("questions", total=None)
        questions = chunks(read_questions(input, reading, report), _CHUNK)
        rows = _ranked_questions(loaded, questions, top_k, least, explain, progress.advance)
    if output is not None:
        with atomic_text(output) as file, progress:
            file.writelines(_lines(rows))
    elif is_stream(input):
        # It may never end: write each result immediately.
        with progress:
            for chunk in rows:
                sys.stdout.buffer.writelines(line.encode() for line in _lines([chunk]))
                sys.stdout.buffer.flush()
    else:
        # Written after the last row is ranked: a bad row must not leave an incomplete file behind.
        with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as file:
            with progress:
                file.writelines(_lines(rows))
            file.seek(0)
            shutil.copyfileobj(file.buffer, sys.stdout.buffer)  # as UTF-8, whatever the terminal's encoding
            sys.stdout.buffer.flush()
    tell_bad_rows(input, report)


def _threshold(text: str | None) -> float | str | None:
    """Return a number from 0 to 1, TUNED, or None if not given."""
    if text is None or text == TUNED:
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        problem = f"{text!r} is not a number from 0 to 1, nor {TUNED!r}"
        raise typer.BadParameter(problem, param_hint="'--threshold'")
    return number


def _ranked_documents(
    model: LabelModel,
    chunks: Iterable[list[Document]],
    top_k: int,
    threshold: float | str | None,
    unused: int,
    explain: bool,
    advance: Callable[[int], None],
) -> Iterator[list[dict[str, Any]]]:
    """Rank the labels of documents, and explain them if asked for, chunk by chunk."""
    least = model.threshold if isinstance(threshold, str) else threshold
    for chunk in chunks:
        tokens = model.encode([document.text for document in chunk])
        rankings = model.rank_tokens(tokens, max(top_k, unused), advance)
        ranked = model.named(rankings, least)
        apart = [] if rankings.unused is None else model.named(rankings.unused)
        answers = []
        for row, document in enumerate(chunk):
            answer: dict[str, Any] = {
                "id": document.id,
                "labels": [_ranked_label(label) for label in ranked[row][:top_k]],
            }
            if unused:
                answer["unseen"] = [_ranked_label(label) for label in apart[row][:unused]]
            if explain:
                from nlpcapsule.explain import explain as explained

                chosen = [label.label for label in ranked[row][:top_k]]
                answer["explanation"] = explained(model, document.text, chosen).to_json()
            answers.append(answer)
        yield answers


def _ranked_label(row: RankedLabel) -> dict[str, Any]:
    """Return the output for one label, with its name if it has one."""
    name = {} if row.name is None else {"name": row.name}
    return {"label": row.label, **name, "score": round(row.score, 6)}


def _ranked_questions(
    model: AnswerModel,
    chunks: Iterable[list[Question]],
    top_k: int | None,
    threshold: float | None,
    explain: bool,
    advance: Callable[[int], None],
) -> Iterator[list[dict[str, Any]]]:
    """Rank the answers to questions, and explain them if asked for, chunk by chunk."""
    least = 0.0 if threshold is None else threshold
    for chunk in chunks:
        rows = []
        for question, answers in zip(chunk, model.rank(chunk, advance), strict=True):
            kept = [row for row in answers[:top_k] if row.score >= least]
            ranking: list[dict[str, Any]] = [
                {"answer": row.answer, "score": round(row.score, 6)} for row in kept
            ]
            if explain:
                from nlpcapsule.explain import explain_answers

                found = explain_answers(model, question, top_k=len(kept))
                for row, explained in zip(ranking, found.answers, strict=True):
                    row["explanation"] = explained.to_json()
            rows.append({"id": question.id, "question": question.text, "ranking": ranking})
        yield rows


def _lines(chunks: Iterable[list[dict[str, Any]]]) -> Iterator[str]:
    return (json.dumps(row, ensure_ascii=False) + "\n" for chunk in chunks for row in chunk)
