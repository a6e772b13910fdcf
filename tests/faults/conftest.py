"""What the fault tests share: how many faults to try, and a network that is not there."""

import socket
import sys
from pathlib import Path

import pytest
from outcomes import NetworkUsed

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / folder) for folder in ("training", "baselines/answers", "encoders")]


@pytest.fixture(scope="session")
def fault_count(request) -> int:
    """Damaged inputs to try per kind: `pytest --faults N`."""
    return request.config.getoption("--faults")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing under test may look a name up or open a connection."""

    def refuse(*arguments, **_):
        raise NetworkUsed(f"the network was used: {arguments[-1]!r}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    connect = socket.socket.connect

    def connect_locally(self, address):
        return connect(self, address) if self.family == socket.AF_UNIX else refuse(address)

    monkeypatch.setattr(socket.socket, "connect", connect_locally)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_locally)


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """A tiny model of every system."""
    from tiny_models import TinyModels

    return TinyModels(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def child():
    """A process to try damaged files in."""
    from child import Child

    process = Child()
    yield process
    process.close()
