"""Describe a model for people: what it was trained on, how well it does, what it cannot do."""

from nlpcapsule import __version__
from nlpcapsule.scoring.models import AnswerModel, LabelModel

_FIGURES = ("P@1", "P@3", "P@5", "nDCG@5", "micro-F1", "macro-F1", "ECE@5", "MAP", "MRR")
_FREQUENT = 5  # labels shown by name


def model_card(model: LabelModel | AnswerModel) -> str:
    """Return the text of the model card, in Markdown."""
    rank = "labels of documents" if isinstance(model, LabelModel) else "answers to questions"
    changes = enumerate(model.facts.changes or (), start=1)
    sections = {
        f"# Model card: `{model.config.model.name}`": f"Ranks {rank}. Version {model.facts.version or 1}, "
        f"written by nlpcapsule {__version__}.",
        "## Data and size": _table(_data(model)),
        "## Changes after training": "\n".join(f"{number}. {_inline(text)}" for number, text in changes),
        "## Figures": _figures(model),
        "## Settings": _table(_settings(model)) + "\n\nAll settings are in `config.json`.",
        "## Limits": "\n".join(f"- {text}" for text in _limits(model)),
    }
    return "\n\n".join(f"{title}\n\n{text}" for title, text in sections.items() if text) + "\n"


def _data(model: LabelModel | AnswerModel) -> dict[str, object]:
    facts, rows = model.facts, dict[str, object]()
    if isinstance(model, LabelModel):
        counts = model.labels.counts
        rows["training documents"] = (
            "unknown" if facts.training_documents is None else facts.training_documents
        )
        rows["labels"] = len(counts)
        if len(counts):
            rows["documents per label, median"] = sorted(counts.tolist())[len(counts) // 2]
            frequent = ", ".join(f"`{_inline(name)}`" for name in model.labels.ids[:_FREQUENT])
            rows["most frequent labels"] = frequent
        rows["labels without documents"] = int((counts == 0).sum()) or None
    else:
        rows["training questions"] = facts.training_questions
    rows["tokens in the vocabulary"] = model.tokenizer.size
    if model.network is not None:
        rows["weights of the network"] = sum(weight.numel() for weight in model.network.parameters())
    rows["fingerprint of the data"] = None if facts.data is None else f"`{_inline(facts.data)}`"
    return rows


def _figures(model: LabelModel | AnswerModel) -> str:
    dev = model.facts.dev or {}
    rows: dict[str, object] = {name: f"{dev[name]:.4f}" for name in _FIGURES if name in dev}
    if not rows:
        return "No documents were held out. Measure the model with `nlpcapsule evaluate`."
    note = "Measured on held-out data that also chose epoch, weights and threshold, so slightly too good."
    if model.facts.changes:
        note += " They were measured before the changes above."
    return f"{note}\n\n{_table(rows, ('figure', 'value'))}"


def _settings(model: LabelModel | AnswerModel) -> dict[str, object]:
    config, facts = model.config, model.facts
    return {
        "system": config.model.name,
        "tokens read of a text": config.text.max_tokens,
        "lexical system": facts.lexical,
        "epochs": facts.epochs_run,
        "seed": str(config.training.seed),
        "threshold": None if facts.threshold is None else f"{facts.threshold:.4f}",
    }


def _limits(model: LabelModel | AnswerModel) -> list[str]:
    limits = [
        "Texts of another kind, language or time than the training data are tagged less well.",
        f"Only the first {model.config.text.max_tokens:,} tokens of a text are read.",
    ]
    if isinstance(model, LabelModel):
        limits.append("Labels with few training documents are found less often than frequent ones.")
        if model.facts.lexical is not None:
            limits.append("The folder holds the words of the training documents: share it only if you may.")
    return limits


def _table(rows: dict[str, object], header: tuple[str, str] = ("", "")) -> str:
    """Return a Markdown table; numbers get separators, rows without a value are left out."""
    cells = [(name, f"{value:,}" if isinstance(value, int) else value) for name, value in rows.items()]
    lines = [header, ("---", "---"), *(row for row in cells if row[1] is not None)]
    return "\n".join(f"| {name} | {value} |" for name, value in lines)


def _inline(text: str) -> str:
    """Return a text that stays in its line and cell, whatever it holds."""
    flat = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return "".join(character for character in flat if character.isprintable())
