"""`nlpcapsule serve`."""

import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_folder_name, say
from nlpcapsule.cli.options import ModelFolder, Threads
from nlpcapsule.errors import DataError, MissingExtraError
from nlpcapsule.learning.store import FeedbackStore
from nlpcapsule.threads import use_threads

TOKEN = "NLPCAPSULE_TOKEN"
_LONGEST_TOKEN = 4_096  # characters


def serve(
    model: Annotated[Path, ModelFolder],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address; 0.0.0.0 is reachable from elsewhere.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8000,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="NUMBER",
            min=1,
            max=256,
            help="Processes, each with its own model and share of the threads.",
        ),
    ] = 1,
    threads: Threads = None,
    feedback: Annotated[
        Path | None,
        typer.Option(
            "--feedback",
            metavar="FILE.sqlite",
            help="Where accepted and rejected labels go.  [default: MODEL.feedback.sqlite, next to MODEL]",
        ),
    ] = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option(
            "--hierarchy",
            metavar="FILE.json",
            help='Broader labels, for the page: {"label": {"name": "…", "broader": ["…"]}}.',
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help=f"A file with the bearer token that requests must have; or set {TOKEN}.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name by which the service may be addressed; may be repeated.  [default: a local service "
            "only local names, others any]",
        ),
    ] = None,
    most_body: Annotated[
        int, typer.Option("--max-body", metavar="BYTES", min=1, help="Largest body of a request.")
    ] = 4 * 2**20,
    most_requests: Annotated[
        int, typer.Option("--max-requests", metavar="NUMBER", min=1, help="Most requests at a time.")
    ] = 256,
) -> None:
    """Serve a model over HTTP, with a page to review labels.

    Open the address that it prints in a browser. docs/serving.md describes the API. Stops after Ctrl-C or
    SIGTERM, once the requests that it has accepted are answered. A new version that is saved into the model
    folder is taken up without a pause.
    """
    check_folder_name(model)
    start_service(
        model,
        threads=threads,
        host=host,
        port=port,
        workers=workers,
        feedback=feedback or default_feedback(model),
        hierarchy=hierarchy,
        token=_token(token_file),
        hosts=tuple(allow_host or ()),
        most_body_bytes=most_body,
        most_requests=most_requests,
    )


def start_service(
    model: Path, *, threads: int | None = None, open_page: bool = False, **options: object
) -> None:
    """Serve a model and print its address.

    Args:
        model: The model folder.
        threads: Threads of all workers together; None takes as many as the machine grants.
        open_page: Whether to open the page in a browser, where there is a screen.
        options: Fields of `ServiceSettings`.

    Raises:
        MissingExtraError: If the packages of the extra are not installed.
    """
    use_threads(threads)
    try:
        from nlpcapsule.service.run import serve as run
        from nlpcapsule.service.settings import ServiceSettings
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "fastapi", "serve") from None

    def tell(address: str) -> None:
        say(f"serving at {address} (Ctrl-C stops it)")
        if open_page and _has_screen():
            webbrowser.open(address)

    settings = ServiceSettings.model_validate({"model": model, **options})
    run(settings, tell, say)
    if settings.feedback is not None:
        with FeedbackStore(settings.feedback) as store:
            reviews = store.counts()["rows"]
        if reviews:
            kept, name = (shlex.quote(os.path.relpath(path)) for path in (settings.feedback, model))
            say(f"reviews: {reviews:,}, kept in {kept}; to teach them to the model:")
            say(
                f"  nlpcapsule feedback export {kept} --output new.jsonl && nlpcapsule learn {name} new.jsonl"
            )


def _has_screen() -> bool:
    """Return whether there is a screen; without one, a text browser would take over the terminal."""
    has_display = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    return bool(has_display) and sys.stdout.isatty()


def default_feedback(model: Path) -> Path:
    """Return the feedback file next to a model folder."""
    folder = model.resolve()
    return folder.with_name(f"{folder.name}.feedback.sqlite")


def _token(path: Path | None) -> str | None:
    """Return the token of a file or of the environment; None if neither is given."""
    if path is None:
        return os.environ.get(TOKEN) or None
    try:
        with path.open(encoding="utf-8") as file:
            token = file.read(_LONGEST_TOKEN + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read as a token ({error})", path) from None
    if not 0 < len(token) <= _LONGEST_TOKEN or "\0" in token:
        raise DataError("holds no token", path, hint="write one into it, or leave --token-file out")
    return token
