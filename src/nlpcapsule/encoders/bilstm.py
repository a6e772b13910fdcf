"""A bidirectional LSTM over word vectors, whose states depend on the whole document."""

from typing import ClassVar, Literal, Self

from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nlpcapsule.encoders.encoder import register_encoder
from nlpcapsule.encoders.word_embedding import WordEmbedding
from nlpcapsule.encoders.word_encoder import WordEncoder, WordEncoderSettings, new_embedding
from nlpcapsule.registry import NetworkInputs


class BiLSTMSettings(WordEncoderSettings):
    """`bilstm`: an LSTM in each direction over word vectors."""

    name: Literal["bilstm"] = "bilstm"
    state_size: int = Field(256, ge=1, description="size of a state, per direction")
    layers: int = Field(1, ge=1, description="stacked layers")


@register_encoder("bilstm")
class BiLSTMEncoder(WordEncoder):
    """LSTMs that read forwards and backwards, with concatenated states.

    Rows are packed, so states do not depend on the amount of padding. States at padding are zero. Dropout is
    on word vectors, between layers and on states.
    """

    settings_type: ClassVar[type[BiLSTMSettings]] = BiLSTMSettings

    def __init__(
        self,
        embedding: WordEmbedding,
        state_size: int,
        layers: int,
        dropout: float,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding, word_dropout)
        self.state_size = 2 * state_size
        self.dropout = nn.Dropout(dropout)
        between = dropout if layers > 1 else 0.0  # torch warns if there is only one layer
        self.lstm = nn.LSTM(
            embedding.size, state_size, layers, batch_first=True, dropout=between, bidirectional=True
        )

    @classmethod
    def from_settings(cls, settings: BiLSTMSettings, inputs: NetworkInputs) -> Self:
        """Build the encoder from its settings."""
        embedding = new_embedding(settings.embedding_size, inputs)
        state_size, layers = settings.state_size, settings.layers
        return cls(embedding, state_size, layers, settings.token_dropout, settings.word_dropout)

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Map word vectors (B, l, v) and a mask (B, l) to states (B, l, H)."""
        # A document without words is read as a single zero vector.
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.shape[1])
        return self.dropout(states * mask.unsqueeze(-1))
