"""The encoders of label-query: trained, kept, opened again, in any company, and cut short."""

import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from encoder_runs import ENCODERS, encoder_config, fitted_labels, planted_documents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted_texts import WORDS
from tiny_transformer import CLS, PAD, SEP, SPECIAL, VOCABULARY, write_tokenizer, write_transformer
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from toy_task import PowerCutError

from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.encoders.bilstm import BiLSTMEncoder, BiLSTMSettings
from nlpcapsule.errors import ConfigError, DataError, MissingExtraError
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.build import build_network
from nlpcapsule.registry import NetworkInputs
from nlpcapsule.scoring.build import network_scorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.prepared_labels import prepare_labels

LABELS = LabelVocabulary([f"label {number}" for number in range(7)], range(7, 0, -1))
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("transformer"))


@every_encoder
@pytest.mark.parametrize("condensed", [4, 0])
def test_a_model_opened_again_ranks_as_it_did_without_the_transformers_folder(
    encoder, condensed, folder, tmp_path
):
    source = shutil.copytree(folder, tmp_path / "encoder")
    documents = planted_documents(24, words=25)
    several = {"layers": 2} if encoder == "bilstm" else {}
    config = encoder_config(encoder, source, condensed=condensed, **several)
    trained = fitted_labels(tmp_path / "model", config, documents)
    shutil.rmtree(source)
    opened = load_model(tmp_path / "model")
    texts = [document.text for document in documents] + ["", "unheardof"]
    assert opened.rank(texts) == trained.rank(texts)
    assert (tmp_path / "model" / "transformer.json").exists() == (encoder == "transformer")


@cache
def random_model(encoder, folder, condensed):
    """Weights large enough for documents and labels to differ."""
    config = encoder_config(encoder, folder, condensed=condensed)
    tokenizer = WordTokenizer.from_file(folder / "tokenizer.json")
    network = build_network(config, tokenizer.size, label_count=len(LABELS), padding_id=tokenizer.padding_id)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            # A capsule keeps its length: doubled, rounding alone would move a kernel of distances visibly.
            if not name.endswith(("bias", "norm.weight")) and ".transformer." not in name:
                parameter.mul_(2.0)
    return LabelModel(config, tokenizer, LABELS, network_scorer(config, tokenizer, network.eval()))


def scores_of(model, texts, batch):
    batched = replace(model, scorer=replace(model.scorer, batch=batch))
    rankings = batched.rank_tokens(batched.encode(texts), len(LABELS))
    scores = np.zeros_like(rankings.scores)
    np.put_along_axis(scores, rankings.labels, rankings.scores, axis=1)
    return scores  # (N, n), by label


@every_encoder
@pytest.mark.parametrize("condensed", [4, 0])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), max_size=45).map(" ".join), min_size=2, max_size=6, unique=True
    ),
    batch=st.integers(2, 6),
)
def test_a_document_scores_the_same_alone_and_in_company(encoder, condensed, folder, texts, batch):
    model = random_model(encoder, folder, condensed)
    together = scores_of(model, texts, batch)
    alone = np.concatenate([scores_of(model, [text], 1) for text in texts])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)


@every_encoder
def test_these_models_really_tell_documents_and_labels_apart(encoder, folder):
    """Or the test above would say nothing."""
    scores = scores_of(random_model(encoder, folder, 4), [" ".join(WORDS[:9]), " ".join(WORDS[9:20])], 2)
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
    assert np.ptp(scores[0]) > 1e-3


@every_encoder
def test_a_run_that_was_cut_short_ends_with_the_weights_it_would_have_had(
    encoder, folder, tmp_path, monkeypatch
):
    documents = planted_documents(24, words=25)
    config = encoder_config(encoder, folder, epochs=2, checkpoint_epochs=0.01)
    fitted_labels(tmp_path / "whole", config, documents)
    loss, done = LabelTask.loss, []

    def until_the_power_fails(*arguments):
        if len(done) == 4:
            raise PowerCutError
        done.append(1)
        return loss(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(LabelTask, "loss", until_the_power_fails)
        with pytest.raises(PowerCutError):
            fitted_labels(tmp_path / "cut", config, documents)
    fitted_labels(tmp_path / "cut", config, documents, resume=True)
    weights = "network.safetensors"
    assert (tmp_path / "cut" / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()


@every_encoder
def test_half_precision_gives_close_float32_scores_and_finite_gradients(encoder, folder):
    config = encoder_config(encoder, folder)
    network = build_network(config, VOCABULARY, label_count=len(LABELS), padding_id=PAD).train()
    tokens = torch.randint(4, VOCABULARY, (3, 25), generator=torch.Generator().manual_seed(1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network(tokens).logits
    assert logits.dtype == torch.float32
    logits.square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())
    network.eval()
    with torch.no_grad():
        expected = network(tokens).logits
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.testing.assert_close(network(tokens).logits, expected, atol=0.2, rtol=0.05)


@every_encoder
def test_every_weight_is_trained(encoder, folder):
    network = build_network(
        encoder_config(encoder, folder), VOCABULARY, label_count=len(LABELS), padding_id=PAD
    )
    network(torch.arange(4, 24)[None]).logits.square().mean().backward()
    assert not [name for name, parameter in network.named_parameters() if parameter.grad is None]


def test_the_bilstm_reads_a_document_both_ways_and_no_further_than_its_words():
    torch.manual_seed(0)
    settings = BiLSTMSettings(embedding_size=3, state_size=4, layers=2, token_dropout=0.0)
    encoder = BiLSTMEncoder(settings, NetworkInputs(5))
    words, mask = torch.randn(2, 6, 3), torch.arange(6) < torch.tensor([[6], [4]])
    with torch.no_grad():
        states = encoder.read(words, mask)
        assert states.shape == (2, 6, encoder.state_size)
        torch.testing.assert_close(states[1, :4], encoder.lstm(words[1:, :4])[0][0])
        assert not states[1, 4:].any()
        changed = words.clone()
        changed[0, 5] += 1  # the last word is known to the first state
        assert not torch.equal(encoder.read(changed, mask)[0, 0], states[0, 0])


def test_a_bilstm_reads_answers_too():
    config = encoder_config("bilstm", task="answers")
    network = build_network(config, VOCABULARY, padding_id=PAD).eval()
    assert isinstance(network.text.capsules.encoder, BiLSTMEncoder)
    with torch.no_grad():
        scores = network(torch.tensor([[4, 5]]), torch.tensor([[6, 7], [8, PAD]]), torch.tensor([0, 0]))
    assert scores.isfinite().all()
    assert scores[0] != scores[1]


def test_a_transformer_brings_its_tokenizer_and_leaves_word_vectors_unread(folder, tmp_path):
    documents = planted_documents(6, words=5)
    config = encoder_config("transformer", folder, vectors=str(tmp_path / "no-such-vectors.txt"))
    data = prepare_labels(documents, None, config)
    assert data.tokenizer.vocabulary == WordTokenizer.from_file(folder / "tokenizer.json").vocabulary
    assert data.vectors is None
    assert any("text.vectors is not read" in note for note in data.notes)


def test_a_tokenizer_without_special_tokens_is_refused(folder, tmp_path):
    write_tokenizer(tmp_path / "tokenizer.json", special_tokens=False)
    config = encoder_config("transformer", folder, tokenizer=str(tmp_path / "tokenizer.json"))
    with pytest.raises(DataError, match=r"tokenizer\.json: does not put one special token such as \[CLS\]"):
        prepare_labels(planted_documents(3, words=5), None, config)


def test_a_kim_cnn_nominates_labels_from_a_transformers_tokens(folder, tmp_path):
    documents = planted_documents(24, words=8)
    config = encoder_config("transformer", folder, candidates=3, negatives="hard", negative_count=2)
    model = fitted_labels(tmp_path / "model", config, documents)
    texts = [document.text for document in documents]
    ranked = load_model(tmp_path / "model").rank(texts, top_k=5)
    assert ranked == model.rank(texts, top_k=5)
    assert {len(labels) for labels in ranked} == {3}


def test_words_are_put_together_for_the_evidence_beside_a_transformer(tmp_path):
    letters = sorted({letter for word in WORDS for letter in word})
    names = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    pieces = Tokenizer(WordPiece({name: id for id, name in enumerate(names)}, unk_token="[UNK]"))
    pieces.pre_tokenizer = Whitespace()
    pieces.add_special_tokens(SPECIAL)
    marks = [("[CLS]", CLS), ("[SEP]", SEP)]
    pieces.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    folder = write_transformer(tmp_path / "transformer", len(names))
    pieces.save(str(folder / "tokenizer.json"))

    documents = planted_documents(60, words=4)
    config = encoder_config("transformer", folder, lexical="one-vs-rest", candidates=4)
    model = fitted_labels(tmp_path / "model", config, documents)
    texts = [document.text for document in documents[:9]]
    words = [len(row) for row in model.scorer.lexical.whole_words(model.encode(texts))]
    assert words == [len(text.split()) + 2 for text in texts]  # and the two marks
    opened = load_model(tmp_path / "model")
    assert opened.rank(texts, top_k=3) == model.rank(texts, top_k=3)


def test_a_window_wider_than_the_transformers_positions_is_refused(folder):
    config = encoder_config("transformer", folder, window=41, max_tokens=60)
    with pytest.raises(
        ConfigError, match=r"reads 40 tokens at once and would be given 41: lower encoder\.win"
    ):
        build_network(config, VOCABULARY, label_count=len(LABELS), padding_id=PAD)
    shorter = encoder_config("transformer", folder, window=512, max_tokens=40)
    build_network(
        shorter, VOCABULARY, label_count=len(LABELS), padding_id=PAD
    )  # no document needs a longer window


def test_without_the_library_the_message_says_how_to_get_it(folder, tmp_path, monkeypatch):
    documents = planted_documents(6, words=5)
    config = encoder_config("transformer", folder)
    fitted_labels(tmp_path / "model", config, documents)
    monkeypatch.setitem(sys.modules, "transformers", None)
    message = r"pip install 'nlpcapsule\[transformers\]'"
    with pytest.raises(MissingExtraError, match=message):
        fitted_labels(tmp_path / "other", config, documents)
    with pytest.raises(MissingExtraError, match=message):
        load_model(tmp_path / "model")
    with pytest.raises(MissingExtraError, match=message):
        prepare_labels(documents, None, encoder_config("transformer", Path("some/transformer")))
