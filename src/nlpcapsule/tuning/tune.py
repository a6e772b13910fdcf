"""Search settings with optuna: each trial is a training, and poor ones are stopped early."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nlpcapsule.atomic_files import write_text
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, DataError, MissingExtraError, NlpCapsuleError, first_line
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.lexical.ranker import LexicalSettings
from nlpcapsule.strict_json import read_json
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.fit_lexical import fit_evidence
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder
from nlpcapsule.tuning.search_space import Choice, Range, searched_settings, setting_value
from nlpcapsule.tuning.toml_file import config_toml

if TYPE_CHECKING:
    from optuna import Study, Trial

METRIC = "nDCG@5"
BEST, NOTE, STUDY = "best.toml", "study.json", "study.sqlite"
_STARTUP, _WARMUP = 4, 1  # trials, and epochs of a trial, that are never stopped early


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes:
        config: The best configuration.
        value: Its metric on held-out documents.
        trials: Finished trials, those that were stopped early among them.
        stopped: Trials that were stopped early.
    """

    config: Config
    value: float
    trials: int
    stopped: int


def tune(
    data: PreparedLabels,
    config: Config,
    overrides: Mapping[str, Any],
    folder: Path,
    trials: int,
    progress: TrainingProgress,
) -> Tuned:
    """Search settings and write the best ones to `best.toml`.

    A search that was stopped continues from its folder. The first trial has the settings of `config`.

    Args:
        data: Documents, with a held-out part.
        config: The settings to start from.
        overrides: Settings that the user gave, which are not searched.
        folder: Where the search is kept.
        trials: Trials in all.
        progress: Receives progress.

    Raises:
        DataError: If no documents are held out.
        ConfigError: If the system has no setting to search, or the folder holds another search.
        MissingExtraError: If optuna is not installed.
    """
    optuna = _library()
    if data.dev is None:
        raise DataError(
            "settings are compared on held-out documents, and there are none", hint="give --dev data"
        )
    space = searched_settings(config, set(overrides))
    if not space:
        raise ConfigError(
            f"the system {config.model.name!r} has no setting that is searched, or all are given"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _begin(folder, config, data.fingerprint(), sorted(space))
    study = _open_study(optuna, folder / STUDY, set(space))
    done = len(_finished(optuna, study))
    # Seeded by the number of finished trials, so that a continued search does not repeat its first choices.
    study.sampler = optuna.samplers.TPESampler(seed=config.training.seed + done)
    if not study.trials:
        study.enqueue_trial(_defaults(config, space))
    lexical = None
    if done < trials and config.lexical is not None:  # the same for all trials
        lexical = fit_evidence(data, config, RunFolder(folder / "lexical", resume=False), progress)
    for _ in range(trials - done):
        trial = study.ask()
        value = _run(trial, data, config, space, folder / "trial", progress, lexical)
        state = None if value is not None else optuna.trial.TrialState.PRUNED
        study.tell(trial, value, state=state)
        _tell(study, trial.number, trials, value, progress)
    shutil.rmtree(folder / "lexical", ignore_errors=True)
    return _conclude(optuna, study, config, space, folder)


def _run(
    trial: Trial,
    data: PreparedLabels,
    config: Config,
    space: Mapping[str, Range | Choice],
    place: Path,
    progress: TrainingProgress,
    lexical: FittedEvidence | None,
) -> float | None:
    """Train with a trial's settings; return its best metric, or None if it was stopped early."""
    chosen = _with_settings(config, {name: values.suggest(trial, name) for name, values in space.items()})
    shutil.rmtree(place, ignore_errors=True)
    watching = _TrialProgress(trial, chosen.network.name, progress)
    try:
        model = fit_labels(data, chosen, RunFolder(place), watching, lexical)
    except _StoppedEarlyError:
        return None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if isinstance(chosen.model, LexicalSettings):  # it has no epochs
        return (model.facts.dev or {})[METRIC]
    return watching.best


class _StoppedEarlyError(Exception):
    """A trial is worse than the median of earlier ones."""


class _TrialProgress(TrainingProgress):
    """Report a trial's epochs to optuna, which may stop it.

    Args:
        trial: The trial.
        title: The network whose epochs count.
        shown: Where progress is shown.
    """

    def __init__(self, trial: Trial, title: str, shown: TrainingProgress) -> None:
        super().__init__(quiet=True)
        self._trial, self._title, self._shown = trial, title, shown
        self.best: float | None = None

    def start(self, title: str, total: int | None, done: int = 0) -> None:
        """Start a stage of the trial."""
        self._shown.start(f"trial {self._trial.number + 1}: {title}", total, done)

    def parts(self, done: int, total: int | None = None, figures: str = "") -> None:
        """Update the number of finished parts."""
        self._shown.parts(done, total, figures)

    def epoch(self, title: str, record: Mapping[str, Any]) -> None:
        """Report the metric of an epoch.

        Raises:
            _StoppedEarlyError: If the trial is not promising.
        """
        if title != self._title or METRIC not in record:
            return
        value = float(record[METRIC])
        self.best = value if self.best is None else max(self.best, value)
        self._trial.report(self.best, int(record["epoch"]))
        if record["epoch"] < record["epochs"] and self._trial.should_prune():
            raise _StoppedEarlyError


def _with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a configuration with other values, wherever they are nested."""
    values = {section: getattr(config, section).model_dump() for section in Config.SECTIONS}
    for name, value in settings.items():
        _replace(values, name, value)
    return Config.model_validate({"task": config.task, **values})


def _replace(values: dict[str, Any], name: str, value: Any) -> bool:
    if name in values and not isinstance(values[name], dict):
        values[name] = value
        return True
    return any(_replace(nested, name, value) for nested in values.values() if isinstance(nested, dict))


def _defaults(config: Config, space: Mapping[str, Range | Choice]) -> dict[str, Any]:
    """Return the starting values that lie inside the space."""
    found = {}
    for name, values in space.items():
        value = setting_value(config, name)
        is_inside = (
            value in values.values
            if isinstance(values, Choice)
            else value is not None and values.low <= value <= values.high
        )
        if is_inside:
            found[name] = value
    return found


def _begin(folder: Path, config: Config, fingerprint: str, names: list[str]) -> None:
    """Write a note of data and settings, or check that they are those of the search in the folder."""
    record = {"data": fingerprint, "config": json.loads(config.model_dump_json()), "searched": names}
    note = folder / NOTE
    if not note.exists():
        if any(folder.iterdir()):
            raise ConfigError(f"{folder} holds other files and no search; name another folder with --output")
        write_text(note, json.dumps(record, indent=2) + "\n")
    elif read_json(note) != record:
        raise ConfigError(
            f"{folder} holds a search with other data or settings; continue it with the same, or name "
            "another folder with --output"
        )
    shutil.rmtree(folder / "lexical", ignore_errors=True)  # of a search that was killed


def _open_study(optuna: ModuleType, path: Path, names: set[str]) -> Study:
    """Create or continue a study.

    Raises:
        NlpCapsuleError: If the file is damaged.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise NlpCapsuleError(f"{path} is no plain file; name another folder with --output")
    try:
        study = optuna.create_study(
            storage=f"sqlite:///{path.resolve()}",
            study_name="nlpcapsule",
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=_WARMUP),
        )
        _close_interrupted(optuna, study)
        complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
        is_sound = all(names <= {*trial.params} and 0 <= (trial.value or 0) <= 1 for trial in complete)
        problem = "" if is_sound and study.direction.name == "MAXIMIZE" else "a trial has impossible values"
    except Exception as error:  # of optuna, SQLAlchemy or SQLite, each of its own kind
        problem = first_line(error)
    if problem:
        raise NlpCapsuleError(f"{path} is damaged ({problem}); remove {path.parent} and start again")
    return study


def _finished(optuna: ModuleType, study: Study) -> list[Any]:
    states = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    return study.get_trials(deepcopy=False, states=states)


def _close_interrupted(optuna: ModuleType, study: Study) -> None:
    """Mark trials that a killed search has left, so that they do not count."""
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)


def _tell(study: Study, number: int, trials: int, value: float | None, progress: TrainingProgress) -> None:
    result = "stopped early" if value is None else f"{METRIC} {value:.4f}"
    settings = ", ".join(f"{name}={_shown(value)}" for name, value in study.trials[number].params.items())
    progress.say(f"trial {number + 1} of {trials}: {result} ({settings})")


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _conclude(
    optuna: ModuleType, study: Study, config: Config, space: Mapping[str, Range | Choice], folder: Path
) -> Tuned:
    """Write the best settings."""
    finished = _finished(optuna, study)
    stopped = [trial for trial in finished if trial.state == optuna.trial.TrialState.PRUNED]
    if len(stopped) == len(finished):
        raise NlpCapsuleError(f"{folder}: no trial has finished; run it again with more --trials")
    best = study.best_trial
    assert best.value is not None
    chosen = _with_settings(config, {name: best.params[name] for name in space})
    note = f"the best of {len(finished)} trials: {METRIC} {best.value:.4f} on held-out documents"
    write_text(folder / BEST, config_toml(chosen, note))
    return Tuned(chosen, best.value, len(finished), len(stopped))


def _library() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
