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

_GRACE_SECONDS = 30  # for requests that are being answered when the service is stopped


def serve(settings: ServiceSettings, say: Callable[[str], None] = lambda text: None) -> None:
    """Serve a model until SIGINT or SIGTERM; requests that were accepted are answered first.

    Args:
        settings: The settings.
        say: Called with the address once the port is open.

    Raises:
        ModelFolderError: If the model cannot be loaded.
        NlpCapsuleError: If the feedback store, the hierarchy or the address cannot be used.
    """
    app = create_app(settings, load_served(settings.model))  # reports what is refused before the port is open
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
        say(f"http://{f'[{host}]' if ':' in host else host}:{port}")  # from here on, signals end it in order
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
