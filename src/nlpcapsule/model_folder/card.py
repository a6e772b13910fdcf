"""Describe a model for people: what it was trained on, how well it does, what it cannot do."""

from nlpcapsule import __version__
from nlpcapsule.scoring.models import AnswerModel, LabelModel

_FIGURES = ("P@1", "P@3", "P@5", "nDCG@5", "micro-F1", "macro-F1", "ECE@5", "MAP", "MRR")
_FREQUENT = 5  # labels shown by name


def model_card(model: LabelModel | AnswerModel) -> str:
    """Return the text of the model card, in Markdown."""
    rank = "labels of documents" if isinstance(model, LabelModel) else "answers to questions"
    sections = [
        f"# Model card: `{model.config.model.name}`",
        f"Ranks {rank}. Version {model.facts.version or 1}, written by nlpcapsule {__version__}.",
        _data(model),
        _changes(model),
        _figures(model),
        _settings(model),
        _limits(model),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _data(model: LabelModel | AnswerModel) -> str:
    facts = model.facts
    rows = []
    if isinstance(model, LabelModel):
        counts = model.labels.counts
        documents = "unknown" if facts.training_documents is None else f"{facts.training_documents:,}"
        rows += [("training documents", documents), ("labels", f"{len(counts):,}")]
        if len(counts):
            rows.append(("documents per label, median", f"{sorted(counts.tolist())[len(counts) // 2]:,}"))
            frequent = ", ".join(f"`{_inline(name)}`" for name in model.labels.ids[:_FREQUENT])
            rows.append(("most frequent labels", frequent))
        if (counts == 0).any():
            rows.append(("labels without documents", f"{int((counts == 0).sum()):,}"))
    elif facts.training_questions is not None:
        rows.append(("training questions", f"{facts.training_questions:,}"))
    rows.append(("tokens in the vocabulary", f"{model.tokenizer.size:,}"))
    if model.network is not None:
        weights = sum(weight.numel() for weight in model.network.parameters())
        rows.append(("weights of the network", f"{weights:,}"))
    if facts.data is not None:
        rows.append(("fingerprint of the data", f"`{_inline(facts.data)}`"))
    return "## Data and size\n\n" + _table(("", ""), rows)


def _changes(model: LabelModel | AnswerModel) -> str:
    if not model.facts.changes:
        return ""
    lines = (f"{number}. {_inline(text)}" for number, text in enumerate(model.facts.changes, start=1))
    return "## Changes after training\n\n" + "\n".join(lines)


def _figures(model: LabelModel | AnswerModel) -> str:
    dev = model.facts.dev or {}
    rows = [(name, f"{dev[name]:.4f}") for name in _FIGURES if name in dev]
    if not rows:
        return "## Figures\n\nNo documents were held out. Measure the model with `nlpcapsule evaluate`."
    note = "Measured on held-out data that also chose epoch, weights and threshold, so slightly too good."
    if model.facts.changes:
        note += " They were measured before the changes above."
    return f"## Figures\n\n{note}\n\n" + _table(("figure", "value"), rows)


def _settings(model: LabelModel | AnswerModel) -> str:
    config = model.config
    rows = [("system", config.model.name), ("tokens read of a text", f"{config.text.max_tokens:,}")]
    if model.facts.lexical is not None:
        rows.append(("lexical system", model.facts.lexical))
    if model.facts.epochs_run is not None:
        rows.append(("epochs", str(model.facts.epochs_run)))
    rows.append(("seed", str(config.training.seed)))
    if model.facts.threshold is not None:
        rows.append(("threshold", f"{model.facts.threshold:.4f}"))
    return "## Settings\n\n" + _table(("", ""), rows) + "\n\nAll settings are in `config.json`."


def _limits(model: LabelModel | AnswerModel) -> str:
    limits = [
        "Texts of another kind, language or time than the training data are tagged less well.",
        f"Only the first {model.config.text.max_tokens:,} tokens of a text are read.",
    ]
    if isinstance(model, LabelModel):
        limits.append("Labels with few training documents are found less often than frequent ones.")
        if model.facts.lexical is not None:
            limits.append("The folder holds the words of the training documents: share it only if you may.")
    return "## Limits\n\n" + "\n".join(f"- {text}" for text in limits)


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [header, ("---", "---"), *rows]
    return "\n".join(f"| {name} | {value} |" for name, value in lines)


def _inline(text: str) -> str:
    """Return a text that stays in its line and cell, whatever it holds."""
    flat = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return "".join(character for character in flat if character.isprintable())
