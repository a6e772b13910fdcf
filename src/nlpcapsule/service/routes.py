"""The endpoints: labels, answers, explanations, feedback, vocabulary, model, health."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.service.problems import ProblemError, documented, problem_response
from nlpcapsule.service.schemas import (
    AnsweredQuestion,
    AnswersRequest,
    AnswersResponse,
    ExplainAnswersRequest,
    ExplainAnswersResponse,
    ExplainRequest,
    ExplainResponse,
    FeedbackRequest,
    FeedbackResponse,
    LabelledDocument,
    LabelsRequest,
    LabelsResponse,
    ModelResponse,
    RankedAnswer,
    RankedLabel,
    Status,
    VocabularyResponse,
)
from nlpcapsule.service.serving import RankText, Service

ERRORS = documented(400, 401, 409, 413, 421, 422, 429, 503)
router = APIRouter(responses=ERRORS)


def service_of(request: Request) -> Service:
    """Return the service that a request is for."""
    service: Service = request.app.state.service
    return service


def check_texts(service: Service, texts: Sequence[str]) -> None:
    """Refuse texts that are too long.

    Raises:
        ProblemError: If one is.
    """
    most = service.settings.most_characters
    for index, text in enumerate(texts):
        if len(text) > most:
            told = f"text {index} has {len(text):,} characters; at most {most:,} are allowed"
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, told)


def check_count(service: Service, count: int, noun: str) -> None:
    """Refuse more documents, questions or answers than allowed.

    Raises:
        ProblemError: If there are more.
    """
    most = service.settings.most_documents
    if count > most:
        told = f"{count:,} {noun} in one request; at most {most:,} are allowed"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, told)


@router.post("/v1/labels")
async def labels(request: Request, body: LabelsRequest) -> LabelsResponse:
    """Rank the labels of documents."""
    service = service_of(request)
    service.label_model()
    check_count(service, len(body.documents), "documents")
    texts = [document.text for document in body.documents]
    check_texts(service, texts)
    ranked = await service.rank([RankText(text, body.top_k) for text in texts])
    least = 0.0 if body.threshold is None else body.threshold
    return LabelsResponse(
        version=ranked[0].version,
        documents=[
            LabelledDocument(
                id=document.id,
                labels=[
                    RankedLabel(label=row.label, name=service.name_of(row.label, row.name), score=row.score)
                    for row in found.labels
                    if row.score >= least
                ],
            )
            for document, found in zip(body.documents, ranked, strict=True)
        ],
    )


@router.post("/v1/answers")
async def answers(request: Request, body: AnswersRequest) -> AnswersResponse:
    """Rank the answers to questions."""
    service = service_of(request)
    service.answer_model()
    check_count(service, len(body.questions), "questions")
    for question in body.questions:
        check_count(service, len(question.answers), "answers to one question")
        check_texts(service, [question.question, *question.answers])
    ranked = await service.answer(
        [Question(given.question, tuple(map(Candidate, given.answers))) for given in body.questions]
    )
    return AnswersResponse(
        version=ranked[0].version,
        questions=[
            AnsweredQuestion(
                id=given.id,
                answers=[
                    RankedAnswer(answer=row.answer, score=row.score, position=row.position)
                    for row in found.answers
                ],
            )
            for given, found in zip(body.questions, ranked, strict=True)
        ],
    )


@router.post("/v1/answers/explain")
async def explain_answers(request: Request, body: ExplainAnswersRequest) -> ExplainAnswersResponse:
    """Explain answers to a question: the words of both, and the share of each part of the model."""
    service = service_of(request)
    check_count(service, len(body.answers), "answers to one question")
    check_texts(service, [body.question, *body.answers])
    question = Question(body.question, tuple(map(Candidate, body.answers)))
    version, found = await service.explain_answers(question, body.top_k, body.words)
    return ExplainAnswersResponse(version=version, answers=[row.to_json() for row in found.answers])


@router.post("/v1/explain")
async def explain(request: Request, body: ExplainRequest) -> ExplainResponse:
    """Explain labels of a document: words, capsules, similar documents, shares."""
    service = service_of(request)
    check_texts(service, [body.text])
    version, found = await service.explain(body.text, body.labels, body.top_k, body.words)
    explained = {row.label: row.name for row in found.labels}
    around = {label: None for document in found.similar for label in document.labels}
    names = {label: service.name_of(label, name) for label, name in (around | explained).items()}
    return ExplainResponse(
        version=version,
        explanation=found.to_json(),
        names={label: name for label, name in names.items() if name is not None},
    )


@router.post("/v1/feedback", status_code=HTTPStatus.CREATED)
async def feedback(request: Request, body: FeedbackRequest) -> FeedbackResponse:
    """Store which labels a person accepted and rejected; it is on the disk when this returns."""
    service = service_of(request)
    if service.feedback is None:
        raise ProblemError(
            HTTPStatus.CONFLICT, "this service stores no feedback; start it with --feedback FILE"
        )
    check_texts(service, [body.text])
    number = await asyncio.to_thread(
        service.feedback.add, body.document_id, body.person, body.text, body.accepted, body.rejected
    )
    service.metrics.feedback.inc()
    return FeedbackResponse(id=number)


@router.get("/v1/vocabulary")
async def vocabulary(
    request: Request,
    query: Annotated[str, Query(max_length=200, description="Words of a label's id or name.")] = "",
    label: Annotated[
        list[str] | None, Query(max_length=200, description="Ids of labels, instead of a query.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> VocabularyResponse:
    """Search the labels by id and name; broader and narrower labels are returned where they are known."""
    search = service_of(request).vocabulary()
    return search.labels(label) if label else search.search(query, limit)


@router.get("/v1/model")
async def model(request: Request) -> ModelResponse:
    """Describe the model that is served."""
    service = service_of(request)
    served = service.holder.current
    is_labels = isinstance(served.model, LabelModel)
    settings = service.settings
    return ModelResponse(
        name=served.name,
        version=served.version,
        loaded_at=served.loaded_at.isoformat(timespec="seconds"),
        task=served.model.config.task,
        system=served.model.config.model.name,
        labels=len(served.model.labels) if isinstance(served.model, LabelModel) else None,
        threshold=served.model.threshold if isinstance(served.model, LabelModel) else None,
        training_documents=served.model.facts.training_documents,
        max_tokens=served.model.config.text.max_tokens,
        accepts_feedback=service.feedback is not None and is_labels,
        has_hierarchy=bool(service.hierarchy.broader),
        example=settings.example,
        limits={
            "body_bytes": settings.most_body_bytes,
            "characters": settings.most_characters,
            "documents": settings.most_documents,
        },
    )


@router.get("/healthz")
async def healthz() -> Status:
    """Say that the process answers."""
    return Status(status="ok")


@router.get("/readyz", response_model=Status)
async def readyz(request: Request) -> Response | Status:
    """Say whether the model is loaded."""
    if service_of(request).holder.is_ready:
        return Status(status="ready")
    return problem_response(HTTPStatus.SERVICE_UNAVAILABLE, "the model is being loaded")


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Return figures for Prometheus."""
    figures = service_of(request).metrics
    return Response(figures.text(), media_type=figures.content_type)
