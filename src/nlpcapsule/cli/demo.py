"""`nlpcapsule demo`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nlpcapsule.cli.files import check_output_folder, say
from nlpcapsule.cli.options import Quiet
from nlpcapsule.cli.serve import default_feedback, start_service
from nlpcapsule.config import DEFAULT_SYSTEM
from nlpcapsule.threads import keep_faster_torch_threads, use_threads

_EXAMPLE = (
    "The street lamp outside our house has been dark for a week, and the bin lorry did not come on Tuesday."
)


def demo(
    output: Annotated[
        Path, Option(metavar="DIR", help="Folder for the models, the data and report.html.")
    ] = Path("demo-output"),
    compare: Annotated[bool, Option("--compare", help="Also train other networks and compare them.")] = False,
    serve: Annotated[
        bool, Option("--serve", help="Then serve the model, with a page to review labels.")
    ] = False,
    port: Annotated[
        int, Option("--port", metavar="NUMBER", min=0, max=65535, help="Port for --serve.")
    ] = 8000,
    quiet: Quiet = False,
) -> None:
    """Train and use models on an embedded sample.

    In about a minute: trains the default model, prints its accuracy, tags three letters, ranks the answers to
    two questions and writes report.html with plots. With --serve it ends with the page, which is opened in a
    browser where there is a screen.
    """
    check_output_folder(output)
    use_threads(None)
    from nlpcapsule.demo import run_demo

    keep_faster_torch_threads(say)
    run_demo(output, quiet, compare)
    if serve:
        model = output / "models" / DEFAULT_SYSTEM["labels"]
        start_service(model, port=port, feedback=default_feedback(model), example=_EXAMPLE, open_page=True)
