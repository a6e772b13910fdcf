"""`nlpcapsule compare`."""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from nlpcapsule.cli.files import check_folder_name, check_output_folder, say, tell_bad_rows
from nlpcapsule.cli.options import Quiet, reads_data
from nlpcapsule.compare.systems import DEFAULT_SYSTEMS, chosen_systems, system_configs
from nlpcapsule.config import DEFAULT_SYSTEM, PRESETS
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.threads import use_threads

_SYSTEMS_HELP = (
    "Systems to compare, separated by commas; `nlpcapsule systems` lists all.  [default: "
    f"{','.join(DEFAULT_SYSTEMS['labels'])}; for answers {','.join(DEFAULT_SYSTEMS['answers'])}]"
)
_SET_HELP = (
    "One setting of a system, as in hybrid.epochs=5, or of all that have it, as in all.max_tokens=200; may "
    "be given several times."
)
_NAMES_HELP = "Names of labels, for hybrid; short for --set hybrid.label_names=FILE."


@reads_data(need_labels=True)
def compare(
    data: Annotated[Path, Option(metavar="DIR", help="Folder with your train, dev and test files.")],
    reading: ReadOptions,
    systems: Annotated[str | None, Option(metavar="NAMES", help=_SYSTEMS_HELP)] = None,
    task: Annotated[
        Literal["labels", "answers"] | None,
        Option(metavar="TASK", help="labels or answers.  [default: detected from the rows]"),
    ] = None,
    output: Annotated[Path, Option(metavar="DIR", help="Folder for the table and finished systems.")] = Path(
        "comparison"
    ),
    settings: Annotated[list[str] | None, Option("--set", metavar="SYSTEM.KEY=VALUE", help=_SET_HELP)] = None,
    label_names: Annotated[Path | None, Option(metavar="FILE", help=_NAMES_HELP)] = None,
    preset: Annotated[
        str | None, Option(metavar="NAME", help=f"Preset of hybrid's settings: {', '.join(PRESETS)}.")
    ] = None,
    seed: Annotated[int, Option(metavar="NUMBER", min=0, help="Seed of every system.")] = 1,
    jobs: Annotated[
        int, Option(metavar="NUMBER", min=1, help="Systems to run in parallel, which affects their times.")
    ] = 1,
    quiet: Quiet = False,
) -> None:
    """Compare systems on your own data.

    Trains each system on DIR's train file, selects on dev and reports on test. Prints accuracy, accuracy on
    rare labels, calibration, time, memory and size, and writes them to compare.json and compare.md. Without
    a dev file, a tenth of train is used to select on; without a test file, dev is used to report on. Each
    system runs in a child process. Finished systems are kept: after an interruption, the same command
    continues.
    """
    use_threads(None)
    from nlpcapsule.compare.data import open_folder

    check_folder_name(data)  # its name is the table's title
    check_output_folder(output)
    source = open_folder(data, reading, task)
    compared = chosen_systems(systems, source.kind)
    ours = DEFAULT_SYSTEM["labels"]
    if label_names and ours not in compared:
        raise NlpCapsuleError(f"--label-names is for {ours}, which is not among the systems compared")
    assignments = [*(settings or ()), *([f"{ours}.label_names={label_names}"] if label_names else [])]
    configs = system_configs(compared, source.kind, assignments, preset, seed)
    for config in configs.values():  # validate everything before the expensive work starts
        if config.text.label_names is not None:
            Thesaurus.read(config.text.label_names)
    sizes, reports = source.check()
    for path, report in reports.items():
        tell_bad_rows(str(path), report)

    from nlpcapsule.compare.comparison import NAME, raise_failures
    from nlpcapsule.compare.comparison import compare as run

    tell = (lambda text: None) if quiet else say
    words = ["--data", data.resolve().name, "--systems", ",".join(compared), "--seed", str(seed)]
    words += ["--jobs", str(jobs), *(("--preset", preset) if preset else ())]
    words += ("--task", task) if task else ()
    words += [*_reading_words(reading), *(word for text in assignments for word in ("--set", text))]
    facts = {"command": shlex.join(["nlpcapsule", NAME, *words]), "sizes": sizes, "seed": seed}
    try:
        page, failures = run(source, configs, output, jobs, quiet, tell, **facts)
    except KeyboardInterrupt:
        typer.echo("stopped; the same command continues from here", err=True)
        raise typer.Exit(130) from None
    typer.echo(page)
    tell(f"wrote {output / NAME}.json and .md")
    raise_failures(failures, "systems failed, the others are kept; the same command tries again")


def _reading_words(reading: ReadOptions) -> list[str]:
    """Return the given reader options, as written in a command."""
    words: list[str] = []
    for field in fields(reading):
        value, option = getattr(reading, field.name), f"--{field.name.replace('_', '-')}"
        if value != field.default:
            words += [option] if value is True else [option, value]
    return words
