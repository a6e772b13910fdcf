"""What all tests share: one thread, which is faster for small tensors, and no time limit per example."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("nlpcapsule", deadline=None)
hypothesis.settings.load_profile("nlpcapsule")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)
