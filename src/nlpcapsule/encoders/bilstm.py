"""Word vectors → token states that know their whole document: an LSTM in each direction."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLSTMEncoder(nn.Module):
    """LSTMs that read forwards and backwards, their states side by side.

    Rows are packed: each direction reads as far as a document's own words go, so its states do not depend on
    how far its row is filled up. States at padding are zero.

    Args:
        size: v, numbers per word vector.
        state_size: Numbers in a state, per direction.
        layers: Layers on top of each other.
        dropout: On word vectors, between layers and on states.
    """

    def __init__(self, size: int, state_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.state_size = 2 * state_size
        self.dropout = nn.Dropout(dropout)
        between = dropout if layers > 1 else 0.0  # torch warns where there is no place for it
        self.lstm = nn.LSTM(size, state_size, layers, batch_first=True, dropout=between, bidirectional=True)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(B, l, v) and (B, l) → (B, l, H)."""
        # A document without words is read as one word that is the zero vector.
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(words), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.shape[1])
        return self.dropout(states * mask.unsqueeze(-1))
