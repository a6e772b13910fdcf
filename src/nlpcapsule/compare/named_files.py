"""Fingerprint the files that a system's settings name, since other contents make a different run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from nlpcapsule.config import Config
from nlpcapsule.errors import DataError

_ENCODER_FILES = ("config.json", "tokenizer.json", "*.safetensors")  # read from a transformer's folder


def files_fingerprint(config: Config) -> str:
    """Return a fingerprint of word vectors, tokenizer and encoder folder; "" if none is named.

    A hub transformer is identified by its name in the settings. Missing files are ignored here; their readers
    report them.
    """
    digest = hashlib.sha256()
    paths = list(_named_files(config))
    for path in paths:
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256")  # reads a chunk at a time
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
        digest.update(path.name.encode() + b"\0" + content.digest())
    return digest.hexdigest()[:8] if paths else ""


def _named_files(config: Config) -> Iterator[Path]:
    for name in (config.text.vectors, config.text.tokenizer):
        if name and Path(name).is_file():
            yield Path(name)
    if config.transformer is not None:
        for pattern in _ENCODER_FILES:
            yield from (path for path in sorted(Path(config.transformer).glob(pattern)) if path.is_file())
