"""A bidirectional LSTM over word vectors, whose states depend on the whole document."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nlpcapsule.encoders.word_encoder import WordEncoder, WordEncoderSettings
from nlpcapsule.registry import ENCODERS, NetworkInputs


class BiLSTMSettings(WordEncoderSettings):
    """`bilstm`: an LSTM in each direction over word vectors."""

    name: Literal["bilstm"] = "bilstm"
    state_size: int = Field(256, ge=1, description="size of a state, per direction")
    layers: int = Field(1, ge=1, description="stacked layers")


@ENCODERS.register("bilstm")
class BiLSTMEncoder(WordEncoder):
    """LSTMs that read forwards and backwards, with concatenated states.

    Rows are packed, so states do not depend on the amount of padding. States at padding are zero. Dropout is
    on word vectors, between layers and on states.
    """

    settings_type: ClassVar[type[BiLSTMSettings]] = BiLSTMSettings

    def __init__(self, settings: BiLSTMSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        size, layers = settings.state_size, settings.layers
        self.state_size = 2 * size
        self.dropout = nn.Dropout(settings.token_dropout)
        between = settings.token_dropout if layers > 1 else 0.0  # torch warns if there is only one layer
        self.lstm = nn.LSTM(
            self.embedding.size, size, layers, batch_first=True, dropout=between, bidirectional=True
        )

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Map word vectors (B, l, v) and a mask (B, l) to states (B, l, H)."""
        # A document without words is read as a single zero vector.
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.shape[1])
        return self.dropout(states * mask.unsqueeze(-1))
