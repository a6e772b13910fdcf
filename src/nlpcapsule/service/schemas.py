"""Requests and responses of the API."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _encodable(text: str) -> str:
    """Reject half of a surrogate pair, which JSON can express and UTF-8 cannot."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("holds half of a surrogate pair, which is no character")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Label = Annotated[Text, Field(min_length=1, max_length=1_000), AfterValidator(_not_blank)]
Identifier = Annotated[Text, Field(min_length=1, max_length=1_000)]
TopK = Annotated[int, Field(ge=1, le=1_000, description="Labels per document, at most.")]


class Request(BaseModel):
    """Base of requests: unknown keys are refused, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class GivenDocument(Request):
    """A document to be labelled."""

    text: Text
    id: Text | None = Field(None, max_length=1_000, description="Returned with the labels.")


class LabelsRequest(Request):
    """Documents to be labelled."""

    documents: list[GivenDocument] = Field(min_length=1)
    top_k: TopK = 10
    threshold: float | None = Field(
        None, ge=0, le=1, description="Leave out labels whose probability is below this."
    )


class RankedLabel(BaseModel):
    """A label and its probability."""

    label: str
    name: str | None = Field(None, description="The label's name, if the model knows it.")
    score: float = Field(description="Probability.")


class LabelledDocument(BaseModel):
    """A document's labels, best first."""

    id: str | None
    labels: list[RankedLabel]


class LabelsResponse(BaseModel):
    """The labels of documents, in the order of the request."""

    version: str = Field(description="The version of the model that ranked.")
    documents: list[LabelledDocument]


class GivenQuestion(Request):
    """A question and candidate answers."""

    question: Text
    answers: list[Text] = Field(min_length=1)
    id: Text | None = Field(None, max_length=1_000)


class AnswersRequest(Request):
    """Questions whose answers are to be ranked."""

    questions: list[GivenQuestion] = Field(min_length=1)


class RankedAnswer(BaseModel):
    """An answer, its probability of being right, and its place among the given ones."""

    answer: str
    score: float
    position: int


class AnsweredQuestion(BaseModel):
    """A question's answers, best first."""

    id: str | None
    answers: list[RankedAnswer]


class AnswersResponse(BaseModel):
    """The ranked answers of questions, in the order of the request."""

    version: str
    questions: list[AnsweredQuestion]


class ExplainRequest(Request):
    """A document whose labels are to be explained."""

    text: Text
    labels: list[Label] | None = Field(
        None, min_length=1, max_length=20, description="Labels to explain; the best ones if left out."
    )
    top_k: int = Field(1, ge=1, le=20, description="Labels to explain if none are named.")
    words: int = Field(10, ge=1, le=100, description="Words per label, at most.")


class ExplainResponse(BaseModel):
    """Explanations, as docs/explanations.md describes them."""

    version: str
    explanation: dict[str, Any]
    names: dict[str, str] = Field(description="Names of labels in the explanation, where they are known.")


class ExplainAnswersRequest(Request):
    """A question whose answers are to be explained."""

    question: Text
    answers: list[Text] = Field(min_length=1)
    top_k: int = Field(1, ge=1, le=20, description="Answers to explain, best first.")
    words: int = Field(10, ge=1, le=100, description="Words per text, at most.")


class ExplainAnswersResponse(BaseModel):
    """Explanations of answers, best first, as docs/explanations.md describes them."""

    version: str
    answers: list[dict[str, Any]]


class FeedbackRequest(Request):
    """A person's decision about a document."""

    document_id: Identifier
    text: Text
    person: Text = Field("", max_length=200)
    accepted: list[Label] = Field(default_factory=list, max_length=1_000)
    rejected: list[Label] = Field(default_factory=list, max_length=1_000)


class FeedbackResponse(BaseModel):
    """The number of the stored row."""

    id: int


class VocabularyLabel(BaseModel):
    """A label of the vocabulary.

    Attributes:
        known: Whether the model can rank it.
    """

    label: str
    name: str | None = None
    documents: int = Field(0, description="Training documents that have it.")
    known: bool = True
    broader: list[str] = []
    narrower: list[str] = []


class VocabularyResponse(BaseModel):
    """Labels that match a search, and the names of all broader and narrower labels in them."""

    total: int
    labels: list[VocabularyLabel]
    names: dict[str, str]


class ModelResponse(BaseModel):
    """The model that is served."""

    name: str
    version: str
    loaded_at: str
    task: str
    system: str
    labels: int | None = None
    threshold: float | None = None
    training_documents: int | None = None
    max_tokens: int
    accepts_feedback: bool
    has_hierarchy: bool
    example: str | None = Field(None, description="A text to try.")
    limits: dict[str, int]


class Status(BaseModel):
    """Whether the service works."""

    status: str
