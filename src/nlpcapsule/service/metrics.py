"""Count and time requests for Prometheus."""

from __future__ import annotations

import os
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

MULTIPROCESS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where worker processes leave their counts


class ServiceMetrics:
    """Counters of one service; several workers add theirs up through a folder."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "nlpcapsule_requests_total", "Requests.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "nlpcapsule_request_seconds",
            "Seconds from the first byte to the answer.",
            ["path"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=self.registry,
        )
        self.batches = Histogram(
            "nlpcapsule_batch_documents",
            "Documents ranked together.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self.registry,
        )
        self.feedback = Counter(
            "nlpcapsule_feedback_total", "Stored decisions about documents.", registry=self.registry
        )
        self.swaps = Counter(
            "nlpcapsule_model_swaps_total", "New versions of the model taken up.", registry=self.registry
        )
        self.loaded = Gauge(
            "nlpcapsule_model_loaded_timestamp_seconds",
            "When the current model was loaded.",
            registry=self.registry,
            multiprocess_mode="mostrecent",
        )

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format, of all workers where there are several."""
        folder = os.environ.get(MULTIPROCESS_FOLDER)
        if not folder or not Path(folder).is_dir():
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry)
