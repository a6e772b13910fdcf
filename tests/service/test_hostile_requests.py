"""Every hostile request is refused with a 4xx problem, and the service still answers afterwards."""

import json

import pytest

LABELS = "/v1/labels"
JSON = {"content-type": "application/json"}
GOOD = {"documents": [{"text": "rain"}]}


def posted(path, content, headers=JSON):
    return lambda client: client.post(path, content=content, headers=headers)


def sent(path, value):
    return posted(path, json.dumps(value).encode())


def chunks():
    for _ in range(300):
        yield b" " * 1000


HOSTILE = {
    "no body": (posted(LABELS, b""), 422),
    "no JSON": (posted(LABELS, b"rain"), 422),
    "truncated JSON": (posted(LABELS, b'{"documents": [{"text": "ra'), 422),
    "JSON that is not UTF-8": (posted(LABELS, b'{"documents": [{"text": "\xff"}]}'), 400),
    "deep nesting": (posted(LABELS, b"[" * 100_000), 400),
    "a number of thousands of digits": (posted(LABELS, b'{"top_k": ' + b"9" * 50_000 + b"}"), 400),
    "NaN": (posted(LABELS, b'{"documents": [{"text": "a"}], "threshold": NaN}'), 422),
    "infinity": (posted(LABELS, b'{"documents": [{"text": "a"}], "threshold": 1e999}'), 422),
    "half of a surrogate pair": (posted(LABELS, rb'{"documents": [{"text": "\ud83d"}]}'), 422),
    "an unknown key": (sent(LABELS, {**GOOD, "debug": True}), 422),
    "a text that is a list": (sent(LABELS, {"documents": [{"text": ["a"]}]}), 422),
    "a text that is null": (sent(LABELS, {"documents": [{"text": None}]}), 422),
    "a number as text": (sent(LABELS, {**GOOD, "top_k": "5"}), 422),
    "a negative number": (sent(LABELS, {**GOOD, "top_k": -1}), 422),
    "a huge number": (sent(LABELS, {**GOOD, "top_k": 10**12}), 422),
    "no documents": (sent(LABELS, {"documents": []}), 422),
    "too many documents": (sent(LABELS, {"documents": [{"text": "a"}] * 9}), 422),
    "a text that is too long": (sent(LABELS, {"documents": [{"text": "a" * 2_001}]}), 422),
    "a body that is too large": (posted(LABELS, b" " * 200_000), 413),
    "a body that is too large, in chunks": (posted(LABELS, chunks()), 413),
    "a body that lies about its length": (posted(LABELS, b"", JSON | {"content-length": "-1"}), 400),
    "a form in place of JSON": (posted(LABELS, b"text=a", {"content-type": "text/plain"}), 422),
    "a label that is accepted and rejected": (
        sent("/v1/feedback", {"document_id": "d", "text": "t", "accepted": ["x"], "rejected": ["x"]}),
        422,
    ),
    "a blank label": (sent("/v1/feedback", {"document_id": "d", "text": "t", "accepted": [" "]}), 422),
    "feedback on nothing": (sent("/v1/feedback", {"document_id": "", "text": "t"}), 422),
    "a path out of the page's folder": (lambda client: client.get("/page/%2e%2e/app.py"), 404),
    "a path that does not exist": (lambda client: client.get("/v1/secrets"), 404),
    "another method": (lambda client: client.delete(LABELS), 405),
    "a query that is too long": (
        lambda client: client.get("/v1/vocabulary", params={"query": "a" * 999}),
        422,
    ),
    "a limit of zero": (lambda client: client.get("/v1/vocabulary", params={"limit": 0}), 422),
    "another project": (
        posted("/v1/projects/x/suggest", b"text=a", {"content-type": "application/x-www-form-urlencoded"}),
        404,
    ),
    "a form without text": (
        posted(
            "/v1/projects/letters/suggest", b"limit=2", {"content-type": "application/x-www-form-urlencoded"}
        ),
        422,
    ),
}


@pytest.fixture
def guarded(start):
    return start(most_documents=8, most_characters=2_000, most_body_bytes=150_000)


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_with_a_problem(guarded, name):
    request, status = HOSTILE[name]
    response = request(guarded)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert problem["detail"]
    assert guarded.post(LABELS, json=GOOD).status_code == 200


def test_an_error_does_not_quote_the_text(guarded):
    response = guarded.post(LABELS, json={"documents": [{"text": "secret " * 1_000}], "top_k": "secret"})
    assert response.status_code == 422
    assert "secret" not in response.text


def test_markup_comes_back_as_it_was_sent(start, answer_folder):
    from nlpcapsule.service.served_model import load_served

    client = start(load_served(answer_folder))
    answers = ["<img src=x onerror=alert(1)>", "</script><b>"]
    body = {"questions": [{"question": "<b>?", "answers": answers}]}
    response = client.post("/v1/answers", json=body)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert sorted(row["answer"] for row in response.json()["questions"][0]["answers"]) == sorted(answers)
