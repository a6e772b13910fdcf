"""A pretrained transformer as an encoder, on a random one of two layers."""

import json
import sys
from dataclasses import replace

import pytest
import torch
from planted_texts import WORDS
from tiny_transformer import CLS, PAD, POSITIONS, SEP, SIZE, VOCABULARY, write_transformer

from nlpcapsule.baselines.answers.cross_encoder import PairEncoder
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.encoders.transformer import TransformerEncoder, mean_state, tokenizer_file
from nlpcapsule.errors import ConfigError, MissingExtraError
from nlpcapsule.registry import NetworkInputs

TEXTS = ["Where batan dovel", "why kimip unheardof lusor anna", "", "how [SEP] thus"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("transformer"))


def encoder_of(folder, kind=TransformerEncoder, **settings):
    own = {"pooled", "limited_by", "checkpointing"}
    options = {name: settings.pop(name) for name in own & settings.keys()}
    inputs = replace(NetworkInputs(VOCABULARY, PAD, POSITIONS), **settings)
    return kind(str(folder), inputs, **options).eval()


def rows_of(*lengths, width=None):
    generator = torch.Generator().manual_seed(3)
    rows = torch.full((len(lengths), width or max(lengths)), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, VOCABULARY, (length,), generator=generator)
    return rows


def test_tokens_are_those_of_the_transformers_own_tokenizer(folder):
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
    ours = WordTokenizer.from_file(tokenizer_file(str(folder)))
    assert (ours.padding_id, ours.size) == (theirs.pad_token_id, len(theirs))
    for text in TEXTS[:3]:
        assert ours.encode([text], 20)[0].tolist() == theirs(text)["input_ids"]
        cut = theirs(text, max_length=4, truncation=True)["input_ids"]
        assert ours.encode([text], 4)[0].tolist() == cut
    # What looks like a special token is text here, and cannot end a question early.
    assert ours.encode([TEXTS[3]], 20)[0].tolist().count(SEP) == 1
    assert ours.encode(["where"], 20)[0].tolist() == [CLS, 4 + WORDS.index("where"), SEP]


def test_states_are_those_of_the_transformer_alone_on_each_text(folder):
    from transformers import AutoModel

    plain, encoder = AutoModel.from_pretrained(folder).eval(), encoder_of(folder)
    rows = rows_of(7, 2, 4, width=12)
    with torch.no_grad():
        states = encoder(rows, rows != PAD)
        assert states.shape == (3, 12, SIZE)
        for row, state, length in zip(rows, states, (7, 2, 4), strict=True):
            expected = plain(input_ids=row[None, :length]).last_hidden_state[0]
            torch.testing.assert_close(state[:length], expected, atol=1e-5, rtol=0)


def test_rows_read_in_groups_have_the_states_of_rows_read_at_once(folder):
    encoder = encoder_of(folder)
    rows = rows_of(*(1 + place * 7 % 20 for place in range(150)))
    kinds = (torch.arange(20) > 9).long().expand(150, -1)
    at_once = encoder(rows, rows != PAD, token_type_ids=kinds).detach()
    with torch.no_grad():
        in_groups = encoder(rows, rows != PAD, token_type_ids=kinds)
    real = rows != PAD
    torch.testing.assert_close(in_groups[real], at_once[real], atol=1e-5, rtol=0)


def test_kinds_of_tokens_are_passed_on(folder):
    from transformers import AutoModel

    plain, encoder = AutoModel.from_pretrained(folder).eval(), encoder_of(folder, PairEncoder, pooled=True)
    rows, kinds = rows_of(6), torch.tensor([[0, 0, 0, 1, 1, 1]])
    with torch.no_grad():
        states = encoder(rows, rows != PAD, kinds)
        expected = plain(input_ids=rows, token_type_ids=kinds)
        torch.testing.assert_close(states, expected.last_hidden_state)
        torch.testing.assert_close(encoder.pooled(states), expected.pooler_output)
        assert not torch.allclose(states, encoder(rows, rows != PAD, torch.zeros_like(kinds)))


def test_without_a_pooling_layer_the_first_state_stands_for_the_row(folder):
    encoder, states = encoder_of(folder, PairEncoder), torch.randn(2, 5, SIZE)
    assert torch.equal(encoder.pooled(states), states[:, 0])
    assert not any("pooler" in name for name, _ in encoder.named_parameters())


def test_the_mean_state_equals_a_loop():
    states = torch.randn(3, 4, 5)
    mask = torch.tensor([[True, True, False, False], [True] * 4, [False] * 4])
    means = mean_state(states, mask)
    torch.testing.assert_close(means[0], (states[0, 0] + states[0, 1]) / 2)
    torch.testing.assert_close(means[1], sum(states[1]) / 4)
    assert means[2].tolist() == [0] * 5


def test_a_row_without_tokens_has_finite_states(folder):
    rows = rows_of(3, 0)
    with torch.no_grad():
        assert encoder_of(folder)(rows, rows != PAD).isfinite().all()


def test_its_configuration_rebuilds_it_without_the_folder(folder):
    encoder = encoder_of(folder, pooled=True)
    text = encoder.to_json()
    assert str(folder) not in text
    again = encoder_of("no longer there", transformer=json.loads(text), pooled=True)
    rows = rows_of(5, 3)
    with torch.no_grad():
        assert not torch.equal(again(rows, rows != PAD), encoder(rows, rows != PAD))
        again.load_state_dict(encoder.state_dict())
        assert torch.equal(again(rows, rows != PAD), encoder(rows, rows != PAD))


def test_loading_says_nothing_and_leaves_the_librarys_own_words_alone(folder, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    encoder_of(folder)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_what_cannot_be_used_is_refused_in_words(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match=r"encoder\.path='.*' is no pretrained transformer: expected a fol"):
        encoder_of(tmp_path)
    damaged = write_transformer(tmp_path / "damaged")
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ConfigError, match="is no pretrained transformer"):
        encoder_of(damaged)
    with pytest.raises(ConfigError, match=r"knows 30 tokens and the tokenizer 31: leave text\.tokenizer out"):
        encoder_of(folder, vocabulary_size=31)
    with pytest.raises(ConfigError, match=r"reads 40 tokens at once and would be given 41: lower text\.max"):
        encoder_of(folder, length=41)
    with pytest.raises(ConfigError, match=r"transformer\.json is not a transformer's configuration"):
        encoder_of(folder, transformer={"hidden_size": 4})


def test_without_the_library_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'nlpcapsule\[transformers\]'"):
        TransformerEncoder("some/model", NetworkInputs(5, length=5))
    with pytest.raises(MissingExtraError, match=r"pip install 'nlpcapsule\[transformers\]'"):
        tokenizer_file("some/model")
