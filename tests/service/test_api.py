"""The endpoints give what the model gives."""

import pytest

from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.learning.store import FeedbackStore
from nlpcapsule.service.serving import RankText
from nlpcapsule.service.vocabulary import Hierarchy, VocabularySearch

LETTER = "The street lamp outside our house has been dark for a week."
OTHER = "Nobody has emptied our bin since Tuesday, and it smells."


def labels_of(client, *texts, **options):
    documents = [{"text": text} for text in texts]
    response = client.post("/v1/labels", json={"documents": documents, **options})
    assert response.status_code == 200, response.text
    return [row["labels"] for row in response.json()["documents"]]


def test_labels_are_those_of_the_model_whoever_else_asks(client, served_labels):
    model = served_labels.model
    for texts in ([LETTER], [LETTER, OTHER], [OTHER] * 5):
        found = labels_of(client, *texts, top_k=4)
        expected = model.rank(texts, 4)
        assert [[row["label"] for row in rows] for rows in found] == [
            [row.label for row in rows] for rows in expected
        ]
        for rows, ranked in zip(found, expected, strict=True):
            assert [row["score"] for row in rows] == pytest.approx([row.score for row in ranked])


def test_each_caller_in_a_batch_gets_as_many_labels_as_it_asked_for(client):
    ranked = client.app.state.service._rank([RankText(LETTER, 1), RankText(OTHER, 4), RankText(LETTER, 2)])
    assert [len(row.labels) for row in ranked] == [1, 4, 2]
    assert ranked[0].labels == ranked[2].labels[:1]


def test_the_whole_label_is_found_first_then_those_that_begin_with_it():
    labels = LabelVocabulary(["by road", "road works", "road"], [9, 5, 1])
    found = VocabularySearch(labels, Hierarchy()).search("Road", 2)
    assert [row.label for row in found.labels] == ["road", "road works"]
    assert found.total == 3


def test_documents_keep_their_ids_and_the_version_is_named(client, served_labels):
    body = {"documents": [{"id": "b", "text": LETTER}, {"text": OTHER}]}
    found = client.post("/v1/labels", json=body).json()
    assert [row["id"] for row in found["documents"]] == ["b", None]
    assert found["version"] == served_labels.version


def test_a_threshold_leaves_labels_out(client):
    (every,) = labels_of(client, LETTER, top_k=5)
    least = every[1]["score"]
    (some,) = labels_of(client, LETTER, top_k=5, threshold=least)
    assert some == every[:2]


def test_answers_are_ranked(answer_client):
    answers = ["The office opens at nine.", "Blue.", "At nine."]
    body = {"questions": [{"id": "q", "question": "When does the office open?", "answers": answers}]}
    (found,) = answer_client.post("/v1/answers", json=body).json()["questions"]
    assert found["id"] == "q"
    assert sorted(row["position"] for row in found["answers"]) == [0, 1, 2]
    assert all(answers[row["position"]] == row["answer"] for row in found["answers"])
    scores = [row["score"] for row in found["answers"]]
    assert scores == sorted(scores, reverse=True)


def test_answers_are_explained_best_first(answer_client):
    question, answers = "When does the office open?", ["The office opens at nine.", "Blue.", "At nine."]
    body = {"questions": [{"question": question, "answers": answers}]}
    (ranked,) = answer_client.post("/v1/answers", json=body).json()["questions"]
    body = {"question": question, "answers": answers, "top_k": 2, "words": 3}
    response = answer_client.post("/v1/answers/explain", json=body)
    assert response.status_code == 200, response.text
    rows = response.json()["answers"]
    assert [row["position"] for row in rows] == [row["position"] for row in ranked["answers"][:2]]
    for row in rows:
        for text, words in ((question, "question_words"), (answers[row["position"]], "answer_words")):
            assert len(row[words]) <= 3
            for word in row[words]:
                assert {text[start:end].lower() for start, end in word["spans"]} == {word["word"].lower()}


def test_answers_of_a_label_model_are_not_explained(client):
    response = client.post("/v1/answers/explain", json={"question": "Who?", "answers": ["I."]})
    assert response.status_code == 409
    assert "/v1/labels" in response.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/labels", "/v1/explain"])
def test_a_model_that_ranks_answers_says_so(answer_client, path):
    body = {"documents": [{"text": "a"}]} if path == "/v1/labels" else {"text": "a"}
    response = answer_client.post(path, json=body)
    assert response.status_code == 409
    assert "/v1/answers" in response.json()["detail"]


def test_explanations_name_words_at_their_places(client):
    response = client.post("/v1/explain", json={"text": LETTER, "top_k": 2, "words": 3})
    assert response.status_code == 200, response.text
    rows = response.json()["explanation"]["labels"]
    assert [row["label"] for row in rows] == [row["label"] for row in labels_of(client, LETTER, top_k=2)[0]]
    for row in rows:
        assert len(row["words"]) <= 3
        for word in row["words"]:
            assert all(LETTER[start:end].lower() == word["word"].lower() for start, end in word["spans"])


def test_an_unknown_label_cannot_be_explained(client):
    response = client.post("/v1/explain", json={"text": LETTER, "labels": ["no-such-label"]})
    assert response.status_code == 422
    assert "no-such-label" in response.json()["detail"]


def test_names_come_from_the_hierarchy_where_the_model_has_none(client):
    response = client.post("/v1/explain", json={"text": LETTER, "labels": ["street-light-out"]}).json()
    assert response["names"]["street-light-out"] == "street light out"
    (rows,) = labels_of(client, LETTER, top_k=200)
    assert {row["label"]: row["name"] for row in rows}["street-light-out"] == "street light out"


def test_feedback_is_on_the_disk_when_it_is_acknowledged(client, tmp_path):
    body = {"document_id": "d", "text": LETTER, "person": "ada", "accepted": ["x"], "rejected": ["y"]}
    first = client.post("/v1/feedback", json=body)
    second = client.post("/v1/feedback", json={**body, "rejected": []})
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["id"] > first.json()["id"]
    with FeedbackStore(tmp_path / "feedback.sqlite") as store:
        rows = list(store.export())
    assert [(row["id"], row["person"], row["labels"], row["rejected"]) for row in rows] == [
        ("d", "ada", ["x"], ["y"]),
        ("d", "ada", ["x"], []),
    ]


def test_a_service_without_a_store_refuses_feedback(start):
    client = start(feedback=None)
    response = client.post("/v1/feedback", json={"document_id": "d", "text": "t", "accepted": ["x"]})
    assert response.status_code == 409
    assert client.get("/v1/model").json()["accepts_feedback"] is False


def test_the_vocabulary_is_searched_by_id_and_name(client):
    found = client.get("/v1/vocabulary", params={"query": "LIGHT street"}).json()
    assert {"street-light-out", "street-light-glare"} <= {row["label"] for row in found["labels"]}
    exact = client.get("/v1/vocabulary", params={"query": "street-light-out", "limit": 1}).json()
    assert [row["label"] for row in exact["labels"]] == ["street-light-out"]
    assert client.get("/v1/vocabulary", params={"query": "zzz"}).json()["total"] == 0


def test_broader_and_narrower_labels_are_named(client):
    (out,) = client.get("/v1/vocabulary", params={"label": "street-light-out"}).json()["labels"]
    assert (out["name"], out["broader"], out["known"]) == ("street light out", ["lights"], True)
    found = client.get("/v1/vocabulary", params={"label": "lights"}).json()
    assert found["labels"][0]["narrower"] == ["street-light-out", "street-light-glare"]
    assert found["labels"][0]["known"] is False
    assert found["names"]["street-light-out"] == "street light out"


def test_the_model_is_described(client, served_labels):
    found = client.get("/v1/model").json()
    assert found["task"] == "labels"
    assert found["labels"] == len(served_labels.model.labels)
    assert found["threshold"] == pytest.approx(served_labels.model.threshold)
    assert found["version"] == served_labels.version


def test_health_and_figures(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    labels_of(client, LETTER, OTHER)
    figures = client.get("/metrics").text
    assert 'nlpcapsule_requests_total{path="/v1/labels",status="200"} 1.0' in figures
    assert "nlpcapsule_batch_documents_sum 2.0" in figures


def test_annif_finds_its_suggest_endpoint(client, served_labels):
    form = {"text": LETTER, "limit": 3, "threshold": 0}
    response = client.post("/v1/projects/letters/suggest", data=form)
    assert response.status_code == 200, response.text
    results = response.json()["results"]
    assert [row["uri"] for row in results] == [row.label for row in served_labels.model.rank([LETTER], 3)[0]]
    assert set(results[0]) == {"uri", "label", "notation", "score"}
    (project,) = client.get("/v1/projects").json()["projects"]
    assert (project["project_id"], project["is_trained"]) == ("letters", True)
    assert client.get("/v1/projects/letters").json() == project
    assert client.get("/v1/projects/other").status_code == 404


def test_openapi_describes_every_endpoint_and_its_errors(client):
    described = client.get("/openapi.json").json()
    assert {"/v1/labels", "/v1/answers", "/v1/explain", "/v1/feedback", "/metrics"} <= set(described["paths"])
    assert (
        "application/problem+json" in described["paths"]["/v1/labels"]["post"]["responses"]["422"]["content"]
    )
    assert "Problem" in described["components"]["schemas"]
