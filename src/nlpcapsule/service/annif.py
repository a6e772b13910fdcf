"""The suggest endpoint of Annif's REST API, so that Annif's `http` backend can use a model.

[my-project]
backend = http
endpoint = http://127.0.0.1:8000/v1/projects/nlpcapsule/suggest
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from pydantic import BaseModel

from nlpcapsule.service.problems import ProblemError, documented
from nlpcapsule.service.routes import ERRORS, check_texts, service_of
from nlpcapsule.service.serving import RankText, Service

router = APIRouter(prefix="/v1/projects", responses=ERRORS | documented(404))
ProjectId = Annotated[str, Path(max_length=200, description="The name of the model folder, or nlpcapsule.")]
ANY = "nlpcapsule"  # names the served model, whatever its folder is called


class Vocabulary(BaseModel):
    """The vocabulary of a project."""

    vocab_id: str
    size: int


class Project(BaseModel):
    """A project, as Annif describes it."""

    project_id: str
    name: str
    language: str = "und"
    backend: dict[str, str] = {"backend_id": "nlpcapsule"}
    vocab: Vocabulary
    is_trained: bool = True
    modification_time: str | None = None


class Projects(BaseModel):
    """All projects."""

    projects: list[Project]


class Suggestion(BaseModel):
    """A suggested subject; `uri` and `notation` are both the label's id."""

    uri: str
    label: str
    notation: str | None
    score: float


class Suggestions(BaseModel):
    """Suggested subjects, best first."""

    results: list[Suggestion]


@router.get("")
async def projects(request: Request) -> Projects:
    """List the served model as a project."""
    return Projects(projects=[_project(service_of(request))])


@router.get("/{project_id}")
async def project(request: Request, project_id: ProjectId) -> Project:
    """Describe the served model as a project."""
    service = service_of(request)
    _check(service, project_id)
    return _project(service)


@router.post("/{project_id}/suggest")
async def suggest(
    request: Request,
    project_id: ProjectId,
    text: Annotated[str, Form()],
    limit: Annotated[int, Form(ge=1, le=1_000)] = 10,
    threshold: Annotated[float, Form(ge=0, le=1)] = 0.0,
) -> Suggestions:
    """Suggest subjects for a text."""
    service = service_of(request)
    _check(service, project_id)
    service.label_model()
    check_texts(service, [text])
    (ranked,) = await service.rank([RankText(text, limit)])
    return Suggestions(
        results=[
            Suggestion(
                uri=row.label,
                label=service.name_of(row.label, row.name) or row.label,
                notation=row.label,
                score=row.score,
            )
            for row in ranked.labels
            if row.score >= threshold
        ]
    )


def _project(service: Service) -> Project:
    served = service.holder.current
    model = service.label_model(served)
    return Project(
        project_id=served.name,
        name=f"{model.config.model.name} ({served.version})",
        vocab=Vocabulary(vocab_id=served.name, size=len(model.labels)),
        modification_time=served.loaded_at.isoformat(timespec="seconds"),
    )


def _check(service: Service, project_id: str) -> None:
    name = service.holder.current.name
    if project_id not in (name, ANY):
        raise ProblemError(HTTPStatus.NOT_FOUND, f"there is no such project: the only one is {name!r}")
