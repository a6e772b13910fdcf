"""Which arithmetic a training uses."""

import pytest
import torch

from nlpcapsule.config import Config
from nlpcapsule.training import gradients
from nlpcapsule.training.gradients import is_bf16


@pytest.mark.parametrize(
    ("setting", "device", "has_instructions", "expected"),
    [
        ("auto", "cpu", True, True),
        ("auto", "cpu", False, False),
        ("auto", "cuda", True, False),
        ("bf16", "cuda", False, True),
        ("float32", "cpu", True, False),
    ],
)
def test_auto_is_bf16_on_a_cpu_with_its_instructions(
    monkeypatch, setting, device, has_instructions, expected
):
    capabilities = {"avx512_bf16": has_instructions, "amx_bf16": False}
    monkeypatch.setattr(gradients.torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    settings = Config.build(overrides={"precision": setting}).training
    assert is_bf16(settings, torch.device(device)) is expected


def test_the_small_preset_chooses_and_the_default_does_not():
    assert Config.build(preset="small").training.precision == "auto"
    assert Config.build().training.precision == "float32"
