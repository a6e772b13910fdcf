"""Map text to token ids: a word-level tokenizer trained on the corpus, or any `tokenizer.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Encoding, Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import NFKC, Lowercase, Replace
from tokenizers.normalizers import Sequence as NormalizerSequence
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import WordLevelTrainer

from nlpcapsule.data.readers.lines import is_stream
from nlpcapsule.data.tokenizer_json import PADDING_TOKEN, UNKNOWN_TOKEN, failures_as_errors, parse_tokenizer
from nlpcapsule.errors import DataError

CHARACTERS_PER_TOKEN = 40
LARGEST_ID = 2**24  # maximum id of a token; a table of vectors has a row for each id up to it
_TRIALS = ["", "a", "the \u2603 is unusual"]  # sample texts that check whether a tokenizer works
_FAILED = "the tokenizer cannot encode a text"

# Scripts that put no space between words: each character, with the marks that sit on it, is a token.
# The sound-lengthening mark is shared by both kana and so belongs to neither in Unicode's tables.
UNSPACED_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
TOKEN_PATTERN = (
    rf"[{UNSPACED_SCRIPTS}]\p{{M}}*"
    rf"|[\p{{L}}\p{{M}}\p{{N}}&&[^{UNSPACED_SCRIPTS}]]+"  # a word or a number
    r"|[^\s\p{Cc}]"  # any other visible character is a token
)


class TokensInText(NamedTuple):
    """The T tokens of a text and where they are in it.

    A token is `text[start:end]`; one that is not in the text, such as [CLS], has (0, 0).
    """

    ids: np.ndarray  # (T,) int32
    offsets: np.ndarray  # (T, 2) int64


class WordTokenizer:
    """Tokenizer that maps texts to arrays of token ids; truncation and padding are switched off.

    Example:
        >>> tokenizer = WordTokenizer.train(["a cat, a dog", "a cat"], min_count=1)
        >>> tokenizer.vocabulary
        ['[PAD]', '[UNK]', 'a', 'cat', ',', 'dog']
        >>> tokenizer.encode(["A bird, a dog"], max_tokens=10)[0].tolist()
        [2, 1, 4, 2, 5]
    """

    def __init__(self, tokenizer: Tokenizer, padding_id: int, unknown_id: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # A text that contains "[PAD]" or "[SEP]" means those characters, not the special token.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.padding_id = padding_id
        self.unknown_id = unknown_id
        self.vocabulary = _tokens_by_id(tokenizer)

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary_size: int = 60_000, min_count: int = 2) -> WordTokenizer:
        """Learn the vocabulary: the most frequent words, compared after NFKC and lower-casing.

        Ties are in code-point order. Padding and unknown, ids 0 and 1, count towards `vocabulary_size`. Some
        word must occur `min_count` times.
        """
        counter, size = _word_level({}), vocabulary_size - 2
        trainer = WordLevelTrainer(vocab_size=size, min_frequency=min_count, show_progress=False)
        counter.train_from_iterator(map(without_lone_surrogates, texts), trainer)
        ids = counter.get_vocab()
        words = sorted(filter(None, ids), key=lambda word: ids[word])
        if not words:
            problem = f"no word occurs {min_count} times or more in the training texts"
            raise DataError(problem, hint="give more text or lower min_count")
        # The special tokens are plain vocabulary entries: the pattern splits brackets, so no text
        # can produce them.
        ids = {word: id for id, word in enumerate([PADDING_TOKEN, UNKNOWN_TOKEN, *words])}
        return cls(_word_level(ids), padding_id=0, unknown_id=1)

    @classmethod
    def from_file(cls, path: str | Path) -> WordTokenizer:
        """Read any `tokenizer.json` (word level, WordPiece, BPE, unigram) that has a padding token."""
        if is_stream(path):
            raise DataError("is a pipe or a device, expected a tokenizer.json", path, hint="name a file")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise DataError("there is no such tokenizer file", path, hint="check the path") from None
        except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a path with a NUL character
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"cannot be read as a tokenizer.json ({reason})", path) from error
        return cls.from_json(text, path)

    @classmethod
    def from_json(cls, text: str, path: str | Path | None = None) -> WordTokenizer:
        """Create a tokenizer from the text of any `tokenizer.json`, or the output of `to_json`."""
        found = cls(*parse_tokenizer(text, path))
        try:
            largest = max(int(ids.max()) for ids in found.encode(_TRIALS, max_tokens=20))
        except DataError as error:
            raise DataError(error.problem, path, hint=error.hint) from None
        if max(largest, found.unknown_id) >= found.size:
            raise DataError("a special token has an id that no token of the vocabulary has", path)
        return found

    def to_json(self) -> str:
        """Return the whole tokenizer as a `tokenizer.json`; equal tokenizers give equal texts."""
        settings = json.loads(self._tokenizer.to_str())
        # Kept so that a padding token with a custom name is recognised on reading.
        padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None}
        token = {"pad_id": self.padding_id, "pad_type_id": 0, "pad_token": self.vocabulary[self.padding_id]}
        return json.dumps({**settings, "padding": padding | token}, ensure_ascii=False)

    @property
    def size(self) -> int:
        """Number of embedding rows: the largest id plus one."""
        return len(self.vocabulary)

    def encode(self, texts: Sequence[str], max_tokens: int) -> list[np.ndarray]:
        """Return the first `max_tokens` token ids of each text, int32, never empty.

        The tokenizer file's post-processor adds special tokens such as [CLS] and [SEP], which count towards
        `max_tokens`. A text without any token becomes the id of the unknown word. A long text is first
        truncated to 40 characters per requested token: words take 5 to 10 in most languages.
        """
        leads = [_lead(text, max_tokens)[0] for text in texts]
        with failures_as_errors(_FAILED, hint="use another tokenizer.json"):
            encodings = self._tokenizer.encode_batch_fast(leads, add_special_tokens=False)
            rows = [self._finished(encoding, max_tokens).ids[:max_tokens] for encoding in encodings]
        return [np.asarray(ids or [self.unknown_id], dtype=np.int32) for ids in rows]  # (tokens,) each

    def encode_with_offsets(self, text: str, max_tokens: int) -> TokensInText:
        """Return the ids of `encode` for a text, with each token's position in the text.

        Offsets refer to the original text, before the tokenizer normalises it (case, ligatures, invisible
        characters). A separate combining accent at the end of a word may be left out of the word's offsets.

        Example:
            >>> tokenizer = WordTokenizer.train(["a cat, a dog"], min_count=1)
            >>> tokenizer.encode_with_offsets("A dog", max_tokens=10).offsets.tolist()
            [[0, 1], [2, 5]]
        """
        lead, start = _lead(text, max_tokens)
        with failures_as_errors(_FAILED, hint="use another tokenizer.json"):
            encoding = self._tokenizer.encode(lead, add_special_tokens=False)
            finished = self._finished(encoding, max_tokens)
        if not finished.ids:
            return TokensInText(np.array([self.unknown_id], dtype=np.int32), np.zeros((1, 2), dtype=np.int64))
        offsets = np.asarray(finished.offsets[:max_tokens], dtype=np.int64)  # (T, 2)
        is_special = np.asarray(finished.special_tokens_mask[:max_tokens], dtype=bool)  # (T,)
        ids = np.asarray(finished.ids[:max_tokens], dtype=np.int32)
        return TokensInText(ids, np.where(is_special[:, None], 0, offsets + start))

    def _finished(self, encoding: Encoding, max_tokens: int) -> Encoding:
        """Return the encoding with its special tokens, truncating the text to make room for them."""
        special_tokens = self._tokenizer.num_special_tokens_to_add(False)
        if special_tokens == 0:
            return encoding
        encoding.truncate(max(max_tokens - special_tokens, 0))
        return self._tokenizer.post_process(encoding)


def without_lone_surrogates(text: str) -> str:
    r"""Replace halves of surrogate pairs (`\ud83d`), which JSON may hold but UTF-8 cannot, by "?"."""
    return text if text.isascii() else text.encode("utf-8", errors="replace").decode("utf-8")


def _word_level(ids: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel(ids, unk_token=UNKNOWN_TOKEN))
    # The zero-width space separates words; other invisible characters (soft hyphens, joiners) do not.
    invisible = [Replace("\u200b", " "), Replace(Regex(r"\p{Cf}"), "")]
    tokenizer.normalizer = NormalizerSequence([*invisible, NFKC(), Lowercase()])
    tokenizer.pre_tokenizer = Split(Regex(TOKEN_PATTERN), behavior="removed", invert=True)
    return tokenizer


def _tokens_by_id(tokenizer: Tokenizer) -> list[str]:
    """Return the vocabulary in id order; an id without a token is an empty string."""
    ids = tokenizer.get_vocab(with_added_tokens=True)
    largest = max(ids.values(), default=-1)
    if largest > LARGEST_ID:
        raise DataError(f"the tokenizer has a token with the id {largest:,}, expected at most {LARGEST_ID:,}")
    tokens = [""] * (largest + 1)
    for token, id in ids.items():
        tokens[id] = token
    return tokens


def _lead(text: str, max_tokens: int) -> tuple[str, int]:
    """Return the start of a text that `max_tokens` tokens could come from, and where it begins."""
    longest = max_tokens * CHARACTERS_PER_TOKEN
    begin = len(text) - len(text.lstrip()) if len(text) > longest else 0
    return without_lone_surrogates(text[begin : begin + longest]), begin
