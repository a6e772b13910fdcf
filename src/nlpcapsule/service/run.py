"""Run the service with uvicorn until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from types import FrameType

import uvicorn
from uvicorn.supervisors import Multiprocess

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.processes import PARENT_VARIABLE
from nlpcapsule.service.app import SETTINGS, create_app
from nlpcapsule.service.logs import set_up_logs
from nlpcapsule.service.metrics import MULTIPROCESS_FOLDER
from nlpcapsule.service.served_model import load_served
from nlpcapsule.service.settings import ServiceSettings
from nlpcapsule.threads import thread_count, use_threads

_GRACE_SECONDS = 30  # for requests that are being answered when the service is stopped


def serve(
    settings: ServiceSettings,
    tell: Callable[[str], None] = lambda address: None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve a model until SIGINT or SIGTERM; requests that were accepted are answered first.

    Args:
        settings: The settings.
        tell: Called with the address once the port is open.
        say: Called after that with remarks: which network answers.

    Raises:
        ModelFolderError: If the model cannot be loaded.
        NlpCapsuleError: If the feedback store, the hierarchy or the address cannot be used.
    """
    remarks: list[str] = []
    served = load_served(settings.model, remarks.append)  # reports what is refused before the port is open
    if served.is_exported:
        remarks.append("answers with the exported network (ONNX Runtime)")
    elif served.model.network is not None and not remarks:
        remarks.append("answers with torch's network")
    app = create_app(settings, served)
    del served  # a new version replaces it
    with tempfile.TemporaryDirectory() as folder, _open_socket(settings.host, settings.port) as listening:
        options = {"log_config": None, "access_log": False, "timeout_graceful_shutdown": _GRACE_SECONDS}
        if settings.workers == 1:
            config = uvicorn.Config(app, server_header=False, **options)  # type: ignore[arg-type]
            server = uvicorn.Server(config)
            for number in (signal.SIGINT, signal.SIGTERM):  # until it runs, and when it raises them again
                signal.signal(number, partial(_stop, server))
            run: Callable[[], None] = partial(server.run, [listening])
        else:
            app.state.service.close()
            del app  # each worker has its own
            use_threads(max(1, thread_count() // settings.workers))  # of each, which inherits the environment
            os.environ[MULTIPROCESS_FOLDER] = folder
            os.environ[SETTINGS] = settings.model_dump_json()
            os.environ[PARENT_VARIABLE] = str(os.getpid())
            os.environ["PYTHONSAFEPATH"] = "1"  # workers import nothing from the working folder
            config = uvicorn.Config(
                "nlpcapsule.service.app:worker_app",
                factory=True,
                workers=settings.workers,
                server_header=False,
                **options,  # type: ignore[arg-type]
            )
            run = Multiprocess(config, sockets=[listening]).run
        host, port = listening.getsockname()[:2]
        tell(f"http://{f'[{host}]' if ':' in host else host}:{port}")  # from here on, signals end it in order
        for remark in remarks:
            say(remark)
        set_up_logs()
        run()


def _stop(server: uvicorn.Server, number: int, frame: FrameType | None) -> None:
    server.should_exit = True


def _open_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        raise NlpCapsuleError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; give another --host or --port"
        ) from None
    return listening
