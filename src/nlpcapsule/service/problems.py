"""Turn every error into a JSON problem (RFC 9457) that says what to do."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from nlpcapsule.errors import ModelFolderError, NlpCapsuleError, cut
from nlpcapsule.service.batching import ClosedError

MEDIA_TYPE = "application/problem+json"
_LOG = logging.getLogger("nlpcapsule.service")
_MOST_ERRORS = 20  # invalid values listed in one answer


class InvalidValue(BaseModel):
    """A value of a request that is not as expected."""

    place: str = Field(description="Where it is, as in documents.0.text.")
    problem: str


class Problem(BaseModel):
    """An error, as RFC 9457 describes it."""

    title: str
    status: int
    detail: str
    errors: list[InvalidValue] | None = None


class ProblemError(Exception):
    """An error with an HTTP status."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def problem_response(
    status: int, detail: str, errors: list[InvalidValue] | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return the response for an error."""
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, errors=errors)
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, media_type=MEDIA_TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses for errors of an endpoint."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


def handle_errors(app: FastAPI) -> None:
    """Register the handlers of an application."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        # The value itself is left out: it may be a document's text.
        found = [
            InvalidValue(
                place=".".join(map(str, each["loc"][1:])) or str(each["loc"][0]), problem=each["msg"]
            )
            for each in error.errors()[:_MOST_ERRORS]
        ]
        if any(each["type"] == "json_invalid" for each in error.errors()):
            return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, "the body is not valid JSON", found)
        first = found[0]
        return problem_response(
            HTTPStatus.UNPROCESSABLE_ENTITY, cut(f"{first.place}: {first.problem}", 300), found
        )

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers) if error.headers else None
        return problem_response(error.status_code, str(error.detail), headers=headers)

    @app.exception_handler(ProblemError)
    async def problem(request: Request, error: ProblemError) -> JSONResponse:
        return problem_response(error.status, error.detail, headers=error.headers)

    @app.exception_handler(NlpCapsuleError)
    async def user_error(request: Request, error: NlpCapsuleError) -> JSONResponse:
        return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))

    @app.exception_handler(ModelFolderError)
    async def unusable(request: Request, error: ModelFolderError) -> JSONResponse:
        # Not the caller's fault, and the message may name folders of this machine.
        _LOG.error("the model failed", extra={"path": request.url.path, "error": str(error)})
        return problem_response(
            HTTPStatus.SERVICE_UNAVAILABLE, "the model's files cannot be used; the service's log has more"
        )

    @app.exception_handler(ClosedError)
    async def closed(request: Request, error: ClosedError) -> JSONResponse:
        return problem_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": "5"})

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        _LOG.error("unexpected error", exc_info=error, extra={"path": request.url.path})
        return problem_response(
            HTTPStatus.INTERNAL_SERVER_ERROR, "an unexpected error; the service's log has more"
        )
