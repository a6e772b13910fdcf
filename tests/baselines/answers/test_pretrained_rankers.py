"""Bi-encoder and cross-encoder on a random transformer of two layers."""

import contextlib
import json
import shutil
import sys

import pytest
import torch
from planted_texts import fitted, planted_questions
from tiny_transformer import CLS, PAD, SEP, VOCABULARY, write_tokenizer, write_transformer

from nlpcapsule.baselines.answers.cross_encoder import join_texts
from nlpcapsule.cli.app import main
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.networks.build import build_network
from nlpcapsule.training.fit_answers import prepare_answers

LENGTH = 12
QUESTION_OF = torch.tensor([0, 1, 1])
both = pytest.mark.parametrize("name", ["bi-encoder", "cross-encoder"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("transformer"))


def settings_of(name, folder, **settings):
    tuned = {"tune": True} if name == "bi-encoder" else {}
    return {"encoder": str(folder), "max_tokens": LENGTH, **tuned, **settings}


def network_of(name, folder, **settings):
    config = Config.build("answers", name, overrides=settings_of(name, folder, **settings))
    return build_network(config, VOCABULARY, padding_id=PAD)


def text_rows(*lengths, width=None, seed=3):
    """[CLS] words [SEP], filled up."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((len(lengths), width or max(lengths)), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, VOCABULARY, (length,), generator=generator)
        row[0], row[length - 1] = CLS, SEP
    return rows


def batch(width=None):
    return text_rows(6, 4, width=width), text_rows(12, 2, 7, width=width, seed=8), QUESTION_OF


def test_a_bi_encoder_scores_by_the_cosine_of_mean_states(folder):
    from transformers import AutoModel

    plain, network = AutoModel.from_pretrained(folder).eval(), network_of("bi-encoder", folder).eval()
    questions, answers, question_of = batch()
    with torch.no_grad():
        scores = network(questions, answers, question_of)
        for candidate, question in enumerate(question_of):
            q, a = (
                plain(input_ids=row[row != PAD][None]).last_hidden_state[0].mean(dim=0)
                for row in (questions[question], answers[candidate])
            )
            expected = network.scale * (q @ a) / (q.norm() * a.norm()) + network.offset
            torch.testing.assert_close(scores[candidate], expected, atol=1e-4, rtol=1e-4)


def test_a_cross_encoder_reads_both_texts_with_their_kinds(folder):
    from transformers import AutoModel

    plain, network = AutoModel.from_pretrained(folder).eval(), network_of("cross-encoder", folder).eval()
    questions, answers, question_of = batch()
    with torch.no_grad():
        scores = network(questions, answers, question_of)
        for candidate, question in enumerate(question_of):
            asked, answer = questions[question], answers[candidate]
            asked, answer = asked[asked != PAD], answer[answer != PAD][1:]
            kinds = torch.tensor([[0] * len(asked) + [1] * len(answer)])
            read = plain(input_ids=torch.cat([asked, answer])[None], token_type_ids=kinds)
            expected = read.pooler_output[0] @ network.output.weight[0] + network.output.bias[0]
            torch.testing.assert_close(scores[candidate], expected, atol=1e-5, rtol=1e-4)


def test_joined_texts_are_those_of_the_tokenizer(folder):
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
    questions, answers = ["where batan", "why"], ["there", "because lutan kisor"]
    expected = tokenizer(questions, answers, padding=True, return_tensors="pt", return_token_type_ids=True)
    alone = [
        tokenizer(texts, padding=True, return_tensors="pt")["input_ids"] for texts in (questions, answers)
    ]
    tokens, kinds = join_texts(*alone, PAD)
    assert torch.equal(tokens, expected["input_ids"])
    assert torch.equal(kinds, expected["token_type_ids"])


@both
def test_a_pair_scores_the_same_alone_and_in_company(name, folder):
    network = network_of(name, folder).eval()
    questions, answers, question_of = batch()
    with torch.no_grad():
        together = network(questions, answers, question_of)
        torch.testing.assert_close(network(*batch(width=20)), together, atol=1e-5, rtol=0)
        for pair, question in enumerate(question_of):
            asked, answer = questions[question], answers[pair]
            alone = network(asked[asked != PAD][None], answer[answer != PAD][None], torch.tensor([0]))
            torch.testing.assert_close(alone[0], together[pair], atol=1e-5, rtol=0)


@both
def test_gradients_are_finite_and_reach_every_parameter(name, folder):
    network = network_of(name, folder).train()
    answer_loss("pointwise", network(*batch()), torch.tensor([1, 0, 1]), QUESTION_OF).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@both
def test_half_precision_gives_close_float32_scores(name, folder):
    network = network_of(name, folder).eval()
    with torch.no_grad():
        expected = network(*batch())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = network(*batch())
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, expected, atol=0.3, rtol=0.05)


@pytest.mark.parametrize(("name", "epochs"), [("bi-encoder", 7), ("cross-encoder", 25)])
def test_planted_answers_are_learnt_and_opened_without_the_transformers_folder(
    name, epochs, folder, tmp_path
):
    encoder = shutil.copytree(folder, tmp_path / "encoder")
    questions = planted_questions(30)
    settings = settings_of(name, encoder, loss="pairwise", epochs=epochs, learning_rate=0.004)
    trained = fitted(tmp_path / "model", name, questions, **settings)
    assert trained.evaluate(questions)["MAP"] > 0.85  # any order gives 0.52
    shutil.rmtree(encoder)
    opened = load_model(tmp_path / "model")
    assert opened.rank(questions) == trained.rank(questions)
    files = {path.name for path in (tmp_path / "model").iterdir()}
    texts = {"MODEL_CARD.md", "config.json", "facts.json", "manifest.json", "metrics.jsonl", "tokenizer.json"}
    assert files == {*texts, "transformer.json", "network.safetensors"}


def test_without_tuning_nothing_is_trained(folder, tmp_path):
    questions = planted_questions(6)
    model = fitted(
        tmp_path / "model", "bi-encoder", questions, **settings_of("bi-encoder", folder, tune=False)
    )
    assert model.facts.epochs_run == 0
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    pretrained = network_of("bi-encoder", folder).state_dict()
    assert all(torch.equal(tensor, pretrained[name]) for name, tensor in model.network.state_dict().items())
    assert load_model(tmp_path / "model").rank(questions) == model.rank(questions)


@both
def test_the_command_line_trains_evaluates_and_predicts(name, folder, tmp_path, monkeypatch, capfd):
    rows = [
        {"question": one.text, "candidates": [{"text": c.text, "label": c.label} for c in one.candidates]}
        for one in planted_questions(8)
    ]
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["nlpcapsule", *map(str, arguments)])
        with contextlib.suppress(SystemExit):
            main()
        said = capfd.readouterr()
        assert "error:" not in said.err
        return said

    settings = [f"--set=encoder={folder}", f"--set=max_tokens={LENGTH}", "--set=epochs=1"]
    model = tmp_path / "model"
    said = run("train", data, "--task", "answers", "--model", name, "--output", model, "-q", *settings)
    assert said == ("", "")
    assert "MAP" in run("evaluate", model, data).out
    ranked = [json.loads(line) for line in run("predict", model, data).out.splitlines()]
    for before, after in zip(rows, ranked, strict=True):
        scores = [entry["score"] for entry in after["ranking"]]
        assert scores == sorted(scores, reverse=True)
        assert {entry["answer"] for entry in after["ranking"]} == {c["text"] for c in before["candidates"]}


def test_a_tokenizer_without_special_tokens_is_refused(folder, tmp_path):
    write_tokenizer(tmp_path / "tokenizer.json", special_tokens=False)
    settings = settings_of("cross-encoder", folder, tokenizer=str(tmp_path / "tokenizer.json"))
    config = Config.build("answers", "cross-encoder", overrides=settings)
    with pytest.raises(DataError, match=r"tokenizer\.json: does not put one special token such as \[CLS\]"):
        prepare_answers(planted_questions(3), None, config)


def test_two_texts_longer_than_the_transformer_reads_are_refused(folder):
    with pytest.raises(ConfigError, match="reads 40 tokens at once and would be given 41"):
        network_of("cross-encoder", folder, max_tokens=21)
    network_of("bi-encoder", folder, max_tokens=21)
