"""Tables and plots of growth show what the results files hold."""

import json
from pathlib import Path

import pytest

from benchmarks.speed.growth_plots import growth_plots
from benchmarks.speed.tables import GROWTH

MACHINE = {"cores": 2, "cores_used": 1.5, "cores_used_by_other_processes": 0.25}
CPU = {"cpu_milliseconds": 200.0, "cpu_ratio": 1.5}
TRAINING = {"commit": "0123456789", "seed": 3, "cpu_seconds": 1_300.0, "peak_memory_mib": 2_000.0}
RECORDS = {
    **{
        name: {
            "ratio": 0.4,
            "cpu_ratio": 0.35,
            "lost_points": 0.05,
            "settings": ["training.epochs=3"] if name == "speed-busy" else [],
            "rounds": [
                [
                    {**TRAINING, "seconds": 1_400.0, "precision_at_1": 0.8668},
                    {**TRAINING, "seconds": 560.0, "precision_at_1": 0.8663},
                ]
            ],
        }
        for name in ("speed-train", "speed-pages", "speed-busy")
    },
    "speed-labels": {
        "batch_size": 32,
        "rounds": 5,
        "rows": [
            {"labels": 4_000, "milliseconds": 100.0, "ratio": 1.0, **CPU, "peak_memory_mib": 512},
            {"labels": 40_000, "milliseconds": 112.0, "ratio": 1.12, **CPU, "peak_memory_mib": 2_048},
        ],
    },
    "speed-tokens": {
        "batch_size": 8,
        "rounds": 3,
        "rows": [{"tokens": 100, "milliseconds": 1_234.0, "ratio": 1.0, **CPU, "peak_memory_mib": 512}],
    },
    "speed-memory": {
        "rows": [
            {
                "documents": 50_000,
                "peak_memory_mib_of_stages": {"steps": 600},
                "peak_memory_mib": 700,
                "ratio": 1,
                "peak_resident_mib": 900,
                "cpu_seconds": 57.6,
            }
        ],
    },
    "speed-processes": {
        "rows": [
            {"processes": 2, "seconds": 9.5, "speedup": 1.8, "peak_memory_mib": 1_000, "machine": MACHINE},
        ],
    },
    "speed-neighbours": {
        "documents": 500_000,
        "asked": 1_000,
        "rows": [
            {
                "system": "index",
                "milliseconds": 1.234,
                "cpu_milliseconds": 1.5,
                "precision_at_1": 0.955,
                "same_nearest": 0.999,
            }
        ],
    },
    "speed-documents": {
        "documents": 60_000,
        "labels": 50_000,
        "candidates_seconds": 100.0,
        "epoch_seconds": 200.0,
        "cpu_seconds": 600.0,
        "peak_memory_gib": 1.5,
        "candidate_recall": 0.95,
        "recall_ceiling": 0.9775,
        "lexical_precision_at_1": 0.97,
        "precision_at_1": 0.98,
        "precision_ceiling": 1.0,
        "peak_gpu_memory_gib": None,
        "machine": MACHINE,
    },
    "speed-routing": {
        "batch_size": 64,
        "tokens": 500,
        "labels": 4_000,
        "rows": [  # of a CPU, whose steps are not recorded
            {
                "system": "paper",
                "reference": "released-xml-cnn",
                "launched_milliseconds": 987.654,
                "launched_ratio": 2.5,
                "peak_memory_mib": 1_362,
            }
        ],
    },
    "speed-predict": {
        "documents": 3_000,
        "timed": 500,
        "models": {
            "omikuji": {"manifest": "1234"},
            "small": {"epochs": 16, "negatives": "hard", "precision": "bf16"},
        },
        "rows": [
            {
                "system": "small onnx",
                "milliseconds": 2.89,
                "ratio": 0.82,
                "request_milliseconds": 4.95,
                "request_ratio": 1.29,
                "process_cpu_seconds": 1.06,
                "process_memory_mib": 358.6,
                "precision_at_1": 0.9092,
                "difference": 0.0000123,
            }
        ],
    },
}
ROWS = {
    "speed-train": "| 3 | commit 0123456 | 560 | 1,300 | 2,000 | 86.63 |",
    "speed-pages": "| 3 | commit 0123456 | 560 | 1,300 | 2,000 | 86.63 |",
    "speed-busy": "| 3 | next to a busy process | 560 | 1,300 | 2,000 | 86.63 |",
    "speed-predict": "| small onnx | 2.89 | 0.82 | 4.95 | 1.29 | 1.06 | 359 | 90.92 | 1e-05 |",
    "speed-routing": "| paper | 987.65 | 2.50 | released-xml-cnn | 1,362 |",
    "speed-labels": "| 40,000 | 112 | 1.12 | 200 | 1.50 | 2.00 |",
    "speed-tokens": "| 100 | 1,234 | 1.00 | 200 | 1.50 | 0.50 |",
    "speed-memory": "| 50,000 | 600 | 700 | 1.00 | 900 | 58 |",
    "speed-processes": "| 2 | 9.5 | 1.80 | 1,000 | 0.2 |",
    "speed-neighbours": "| index | 1.23 | 1.50 | 95.50 | 99.9% |",
    "speed-documents": "| 60,000 | 50,000 | 100 | 200 | 10.0 | 1.50 | 95.0 | 97.8 | 97.0 | 98.0 | 100.0 |",
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_table_has_a_row_for_each_measurement(name):
    text = GROWTH[name]({**RECORDS[name], "hardware": "a toaster, torch 9"})
    assert ROWS[name] in text
    assert f"`results/{name}.json`: a toaster" in text


def test_a_table_of_trainings_tells_their_settings():
    notes = {
        name: GROWTH[name]({**RECORDS[name], "hardware": "a toaster"})
        for name in ("speed-train", "speed-busy")
    }
    assert "<sub>training.epochs=3; ratio of times 0.40" in notes["speed-busy"]
    assert "<sub>ratio of times 0.40" in notes["speed-train"]


def test_a_table_of_predictions_tells_how_networks_were_trained():
    text = GROWTH["speed-predict"]({**RECORDS["speed-predict"], "hardware": "a toaster, torch 9"})
    assert "timed; small: 16 epochs, hard negatives, bf16; `results" in text


def test_every_file_that_is_there_is_drawn(tmp_path):
    assert growth_plots(tmp_path) == {}
    for name, record in RECORDS.items():
        text = json.dumps({**record, "hardware": "a toaster, torch 9"})
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    drawn = growth_plots(tmp_path)
    names = ("labels", "label-memory", "tokens", "token-memory", "documents", "memory", "processes")
    names += ("process-memory",)
    assert set(drawn) == {f"scale-{name}.svg" for name in names}
    assert all("a toaster" in text and "in proportion" in text for text in drawn.values())
    assert "40,000" in drawn["scale-labels.svg"]


def test_plots_in_results_show_what_the_results_hold():
    folder = Path(__file__).parents[2] / "results"
    for name, text in growth_plots(folder).items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name}: run `benchmarks speed plots`"
