"""Build the web application."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from nlpcapsule import __version__
from nlpcapsule.processes import end_with_parent
from nlpcapsule.service import annif, routes
from nlpcapsule.service.guards import Guard
from nlpcapsule.service.logs import set_up_logs
from nlpcapsule.service.problems import Problem, handle_errors
from nlpcapsule.service.served_model import ServedModel
from nlpcapsule.service.serving import Service
from nlpcapsule.service.settings import ServiceSettings

PAGE = Path(__file__).parent / "page"
SETTINGS = "NLPCAPSULE_SERVICE"  # environment variable with the settings of worker processes
_LOG = logging.getLogger("nlpcapsule.service")


def create_app(settings: ServiceSettings, served: ServedModel | None = None) -> FastAPI:
    """Return the application.

    Args:
        settings: Its settings.
        served: The model, if it is already loaded; otherwise it is loaded at the start.
    """
    service = Service(settings, served)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        current = service.holder.current
        _LOG.info(
            "ready",
            extra={"model": current.name, "version": current.version, "exported": current.is_exported},
        )
        yield
        service.close()
        _LOG.info("stopped")

    app = FastAPI(
        title="nlpcapsule",
        version=__version__,
        description="Tag text with labels, rank answers, explain both.",
        lifespan=lifespan,
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(routes.router)
    app.include_router(annif.router)
    handle_errors(app)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(Guard, settings=settings, observe=_observer(service))
    _document_problems(app)
    return app


def worker_app() -> FastAPI:
    """Return the application of a worker process, whose settings are in the environment."""
    end_with_parent()
    set_up_logs()
    return create_app(ServiceSettings.model_validate_json(os.environ[SETTINGS]))


def _observer(service: Service):  # type: ignore[no-untyped-def]
    def observe(scope: Scope, status: int, seconds: float, identifier: str) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "other") or "/page"  # a bounded number of values
        service.metrics.requests.labels(path, status).inc()
        service.metrics.seconds.labels(path).observe(seconds)
        _LOG.info(
            "request",
            extra={
                "method": scope["method"],
                "path": path,
                "status": status,
                "ms": round(1000 * seconds, 1),
                "request": identifier,
            },
        )

    return observe


def _document_problems(app: FastAPI) -> None:
    """Add the schema of errors to OpenAPI, in place of FastAPI's own."""
    build = app.openapi

    def openapi() -> dict:
        schema = build()
        schemas = schema["components"]["schemas"]
        if "Problem" not in schemas:
            described = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= described.pop("$defs", {}) | {"Problem": described}
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
