"""The word-level tokenizer: how text splits into words, and how its vocabulary is learned."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import NFKC, Lowercase, Replace
from tokenizers.normalizers import Sequence as NormalizerSequence
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import WordLevelTrainer

from nlpcapsule.errors import ConfigError, DataError

PADDING_TOKEN, UNKNOWN_TOKEN = "[PAD]", "[UNK]"

# Scripts that put no space between words: each character, with the marks that sit on it, is a token.
# The sound-lengthening mark is shared by both kana and so belongs to neither in Unicode's tables.
UNSPACED_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
TOKEN_PATTERN = (
    rf"[{UNSPACED_SCRIPTS}]\p{{M}}*"
    rf"|[\p{{L}}\p{{M}}\p{{N}}&&[^{UNSPACED_SCRIPTS}]]+"  # a word or a number
    r"|[^\s\p{Cc}]"  # any other visible character is a token
)


def train_word_level(texts: Iterable[str], vocabulary_size: int, min_count: int) -> Tokenizer:
    """Learn the most frequent words, ties in code-point order; ids 0 and 1 are padding and unknown.

    Raises:
        ConfigError: If `vocabulary_size` or `min_count` is impossible.
        DataError: If no word occurs `min_count` times.
    """
    if vocabulary_size < 3:
        raise ConfigError(
            f"vocabulary_size must be at least 3 (padding, unknown, a word); got {vocabulary_size}"
        )
    if min_count < 1:
        raise ConfigError(f"min_count must be a positive integer; got {min_count}")
    counter = _word_level({})
    trainer = WordLevelTrainer(vocab_size=vocabulary_size - 2, min_frequency=min_count, show_progress=False)
    counter.train_from_iterator(map(without_lone_surrogates, texts), trainer)
    ids = counter.get_vocab()
    words = sorted(filter(None, ids), key=lambda word: ids[word])
    if not words:
        problem = f"no word occurs {min_count} times or more in the training texts"
        raise DataError(problem, hint="give more text or lower min_count")
    # The special tokens are plain vocabulary entries: the pattern splits brackets, so no text
    # can produce them.
    return _word_level({word: id for id, word in enumerate([PADDING_TOKEN, UNKNOWN_TOKEN, *words])})


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
