"""Requests generated from the API's own description never cause a server error."""

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis")

pytestmark = pytest.mark.slow


@pytest.fixture
def described(start):
    client = start(host="0.0.0.0")  # any name in the Host header
    return schemathesis.openapi.from_asgi("/openapi.json", client.app)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@hypothesis.settings(
    max_examples=60, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), derandomize=True
)
def test_no_request_causes_a_server_error(case):
    response = case.call()
    assert response.status_code < 500, response.text
    case.validate_response(response, checks=[schemathesis.checks.not_a_server_error])
