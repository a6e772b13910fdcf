"""Requests generated from the API's own description never cause a server error."""

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis")

pytestmark = pytest.mark.slow
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_no_request_causes_a_server_error(start, mode):
    client = start(host="0.0.0.0")  # any name in the Host header
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 12
    statuses = set()

    for operation in operations:
        requests = operation.as_strategy(generation_mode=mode)

        @hypothesis.settings(
            max_examples=60, suppress_health_check=list(hypothesis.HealthCheck), derandomize=True
        )
        @hypothesis.given(requests)
        def check(case):
            response = case.call()
            statuses.add(response.status_code)
            assert response.status_code < 500, f"{case.method} {case.path}: {response.text}"

        try:
            check()
        except hypothesis.errors.Unsatisfiable:  # an endpoint without input has no bad requests
            assert mode is schemathesis.GenerationMode.NEGATIVE
    assert (422 if mode is schemathesis.GenerationMode.NEGATIVE else 200) in statuses
