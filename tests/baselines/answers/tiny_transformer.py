"""A random BERT of two layers with a tokenizer of its own, as folders of pretrained transformers are."""

import pytest
from planted_texts import WORDS
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PAD, UNK, CLS, SEP = range(4)
SIZE, POSITIONS = 16, 40
VOCABULARY = len(SPECIAL) + len(WORDS)


def write_transformer(folder, vocabulary_size=VOCABULARY, positions=POSITIONS):
    """Writes config.json, model.safetensors and tokenizer.json; skips where transformers is missing."""
    transformers = pytest.importorskip("transformers", reason="needs pip install 'nlpcapsule[transformers]'")
    import torch

    torch.manual_seed(4)
    config = transformers.BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=SIZE,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        initializer_range=0.2,  # or all states would be much alike
        hidden_dropout_prob=0.0,  # so small a network learns nothing with it
        attention_probs_dropout_prob=0.0,
    )
    transformers.BertModel(config).save_pretrained(folder)
    write_tokenizer(folder / "tokenizer.json")
    return folder


def write_tokenizer(path, special_tokens=True):
    tokenizer = Tokenizer(WordLevel({word: id for id, word in enumerate([*SPECIAL, *WORDS])}, "[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.add_special_tokens(SPECIAL)
    if special_tokens:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
        )
    tokenizer.save(str(path))
