"""The settings of a service."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServiceSettings(BaseModel):
    """Settings of `nlpcapsule serve`; worker processes receive them as JSON.

    Attributes:
        model: The model folder.
        host: The address to listen on.
        port: The port.
        workers: Processes, each with its own copy of the model.
        feedback: The SQLite file for accepted and rejected labels; None disables feedback.
        hierarchy: A file with the labels' broader labels; None if there is none.
        token: The bearer token that requests must have; None asks for none.
        hosts: Names by which the service may be addressed; empty allows all.
        most_body_bytes: Largest body of a request.
        most_characters: Longest text.
        most_documents: Most documents or questions in a request, and most answers to a question.
        most_requests: Most requests at a time; further ones are told to come back.
        most_batch: Most documents ranked together.
        example: A text that the page offers to try.
        watch_seconds: Seconds between looks for a new version of the model; 0 never looks.
    """

    model_config = ConfigDict(frozen=True)

    model: Path
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    workers: int = Field(1, ge=1)
    feedback: Path | None = None
    hierarchy: Path | None = None
    token: str | None = Field(None, min_length=1, repr=False)
    hosts: tuple[str, ...] = ()
    most_body_bytes: int = Field(4 * 2**20, ge=1)
    most_characters: int = Field(200_000, ge=1)
    most_documents: int = Field(64, ge=1)
    most_requests: int = Field(256, ge=1)
    most_batch: int = Field(32, ge=1)
    example: str | None = None
    watch_seconds: float = Field(2.0, ge=0)

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Names in the Host header; a local service refuses others, as a page elsewhere could use them."""
        if self.hosts or self.host not in LOOPBACK:
            return self.hosts
        return LOOPBACK
