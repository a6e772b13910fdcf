"""What every encoder offers, and encoders that are added from outside of the package."""

import sys

import numpy as np
import pytest
import torch
from encoder_runs import ENCODERS, SIZES, encoder_config, fitted_labels, planted_documents
from tiny_transformer import CLS, PAD, SEP, VOCABULARY, write_transformer

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.bilstm import BiLSTMEncoder
from nlpcapsule.encoders.convolution import ConvolutionEncoder
from nlpcapsule.encoders.encoder import Encoder, build_encoder
from nlpcapsule.encoders.windowed_transformer import WindowedTransformer
from nlpcapsule.model_folder import load_model
from nlpcapsule.registry import ENCODERS as ENCODERS_BY_NAME
from nlpcapsule.registry import NetworkInputs

ROWS = torch.tensor([[CLS, 5, 6, 7, 8, SEP], [CLS, 9, SEP, PAD, PAD, PAD]])
IDF = np.linspace(0.0, 3.0, VOCABULARY)
CLASSES = {"convolution": ConvolutionEncoder, "bilstm": BiLSTMEncoder, "transformer": WindowedTransformer}
every_encoder = pytest.mark.parametrize("name", ENCODERS)

# A file that a user might write; the encoder forgets everything but the word itself.
OUTSIDE = """
from torch import nn
from nlpcapsule.encoders.word_encoder import WordEncoder, WordEncoderSettings
from nlpcapsule.registry import ENCODERS

class WordByWordSettings(WordEncoderSettings):
    state_size: int = 6

@ENCODERS.register("word-by-word")
class WordByWord(WordEncoder):
    settings_type = WordByWordSettings

    def __init__(self, settings, inputs):
        super().__init__(settings, inputs)
        self.state_size = settings.state_size
        self.linear = nn.Linear(self.embedding.size, settings.state_size)

    def read(self, words, mask):
        return self.linear(words).tanh() * mask.unsqueeze(-1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("transformer"))


@pytest.fixture
def known_encoders():
    """Names that a test registers are forgotten after it."""
    before = dict(ENCODERS_BY_NAME)
    yield
    ENCODERS_BY_NAME.clear()
    ENCODERS_BY_NAME.update(before)


def encoder_of(name, folder, **settings):
    torch.manual_seed(1)
    inputs = NetworkInputs(VOCABULARY, PAD, length=SIZES["max_tokens"])
    return build_encoder(encoder_config(name, folder, **settings).network.encoder, inputs).eval()


@every_encoder
def test_settings_choose_the_class(name, folder):
    encoder = encoder_of(name, folder)
    assert type(encoder) is CLASSES[name]
    assert isinstance(encoder, Encoder)


@every_encoder
def test_states_are_as_wide_as_said_and_zero_at_padding(name, folder):
    with torch.no_grad():
        states, mask = encoder_of(name, folder)(ROWS)
    assert states.shape == (*mask.shape, encoder_of(name, folder).state_size)
    assert mask[0].all()
    assert not mask[1].all()
    assert not states[~mask].any()
    assert states[mask].any(dim=-1).all()


@every_encoder
def test_short_texts_have_a_state_and_a_word_vector_per_token(name, folder):
    encoder = encoder_of(name, folder)
    with torch.no_grad():
        states, mask = encoder.token_states(ROWS)
        words = encoder.word_vectors(ROWS, states)
    assert mask.tolist() == (ROWS != PAD).tolist()
    assert states.shape == (*ROWS.shape, encoder.state_size)
    assert words.shape == (*ROWS.shape, encoder.name_size)


@every_encoder
def test_names_and_documents_lie_in_one_space(name, folder):
    encoder = encoder_of(name, folder)
    names = encoder.name_vectors(Ragged.from_rows([[CLS, 5, SEP], [CLS, 9, 6, SEP], [CLS, 7, SEP]]), IDF)
    assert np.linalg.norm(names, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    with torch.no_grad():
        place = encoder.place(ROWS, *encoder(ROWS), torch.tensor(IDF, dtype=torch.float32))
        alone = encoder.place(ROWS[1:, :3], *encoder(ROWS[1:, :3]), torch.tensor(IDF, dtype=torch.float32))
    assert place.shape == (2, names.shape[1]) == (2, encoder.name_size)
    torch.testing.assert_close(place[1:], alone)


@every_encoder
def test_words_are_left_out_in_training_alone(name, folder):
    encoder = encoder_of(name, folder, word_dropout=0.9, token_dropout=0.0)
    with torch.no_grad():
        assert torch.equal(encoder(ROWS)[0], encoder(ROWS)[0])
        whole, fewer = encoder(ROWS)[0], encoder.train()(ROWS)[0]
    assert fewer.shape != whole.shape or not torch.equal(fewer, whole)


def test_only_a_pretrained_transformer_has_a_learning_rate_of_its_own(folder):
    assert encoder_of("transformer", folder, encoder_learning_rate=0.0125).own_rate == 0.0125
    assert [encoder_of(name, folder).own_rate for name in ("convolution", "bilstm")] == [None, None]


def test_an_encoder_is_added_from_a_file_outside_of_the_package(tmp_path, monkeypatch, known_encoders):
    (tmp_path / "word_by_word.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    import word_by_word

    monkeypatch.delitem(sys.modules, "word_by_word")  # another test may import it again
    documents = planted_documents(24, words=6)
    config = encoder_config("word-by-word", state_size=5)
    assert config.transformer is None  # it reads the corpus's own words
    model = fitted_labels(tmp_path / "model", config, documents)
    assert type(model.network.document.encoder) is word_by_word.WordByWord
    assert model.network.document.encoder.state_size == 5
    texts = [document.text for document in documents[:5]]
    assert load_model(tmp_path / "model").rank(texts) == model.rank(texts)
