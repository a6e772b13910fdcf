"""Documents longer than a transformer's window, on a random transformer of two layers."""

import math

import pytest
import torch
from encoder_runs import encoder_config, fitted_labels, planted_documents, right_at_first
from tiny_transformer import CLS, PAD, SEP, SIZE, VOCABULARY, write_transformer

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.encoders.windowed_transformer import cut_windows, leave_out
from nlpcapsule.networks.build import build_network
from nlpcapsule.training import loop
from nlpcapsule.training.optimizers import build_optimizers

LABELS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("transformer"))


def network_of(folder, **settings):
    config = encoder_config("transformer", folder, **settings)
    return build_network(config, VOCABULARY, label_count=LABELS, padding_id=PAD)


def text_rows(*lengths, seed=3):
    """[CLS] words [SEP] with so many words each, filled up."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((len(lengths), max(lengths) + 2), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[1 : length + 1] = torch.randint(4, VOCABULARY, (length,), generator=generator)
        row[0], row[length + 1] = CLS, SEP
    return rows


def windows_one_by_one(row, most, stride):
    """The plain way: lists of tokens with their marks."""
    text = [token for token in row.tolist() if token not in (CLS, SEP, PAD)]
    if stride is None:
        most = stride = math.ceil(len(text) / max(1, math.ceil(len(text) / most))) or 1
    starts = [0]
    while starts[-1] + most < len(text):
        starts.append(starts[-1] + stride)
    return [[CLS, *text[start : start + most], SEP] for start in starts]


@pytest.mark.parametrize("stride", [None, 10, 7, 1])
def test_windows_are_those_of_a_plain_loop_and_none_is_without_text(stride):
    rows = text_rows(1, 9, 10, 11, 20, 21, 38, 0)
    windows = cut_windows(rows, PAD, window=12, stride=stride)
    expected = [
        (number, window) for number, row in enumerate(rows) for window in windows_one_by_one(row, 10, stride)
    ]
    found = [
        (int(document), tokens[mask].tolist())
        for document, tokens, mask in zip(windows.document, windows.tokens, windows.mask, strict=True)
    ]
    assert found == expected
    for tokens, counted in zip(windows.tokens[:-1], windows.counted[:-1], strict=True):
        assert counted.any()
        assert not {CLS, SEP, PAD} & set(tokens[counted].tolist())
    assert windows.tokens[-1][windows.counted[-1]].tolist() == [CLS, SEP]  # the document without words


@pytest.mark.parametrize("row", [[PAD], [CLS], [CLS, SEP]])
def test_a_document_without_words_has_finite_scores(row, folder):
    network = network_of(folder).eval()
    with torch.no_grad():
        assert network(torch.tensor([row])).logits.isfinite().all()


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("stride", [None, 4])
def test_a_long_document_is_encoded_as_its_windows_one_by_one(stride, gradients, folder):
    from transformers import AutoModel

    plain = AutoModel.from_pretrained(folder).eval()
    network = network_of(folder, stride=stride).eval()
    rows = text_rows(38, 3, 15)
    with torch.set_grad_enabled(gradients):
        states, mask = network.document.encoder(rows)
    for row, found, real in zip(rows, states, mask, strict=True):
        with torch.no_grad():
            expected = torch.cat(
                [
                    plain(input_ids=torch.tensor([window])).last_hidden_state[0, 1:-1]
                    for window in windows_one_by_one(row, 10, stride)
                ]
            )
        torch.testing.assert_close(found[real].detach(), expected, atol=1e-5, rtol=0)
        assert not found[~real].any()
    assert states.shape[2] == SIZE


def test_a_short_document_costs_one_window():
    assert len(cut_windows(text_rows(10), PAD, window=12).tokens) == 1
    assert cut_windows(text_rows(4, 2), PAD, window=12).tokens.shape == (2, 6)


def test_without_a_stride_the_windows_of_a_document_are_as_few_as_can_be_and_of_like_lengths():
    for length in range(1, 39):
        lengths = cut_windows(text_rows(length), PAD, window=12).counted.sum(dim=1).tolist()
        assert len(lengths) == -(-length // 10)
        assert sum(lengths) == length
        assert max(lengths) - min(lengths) < len(lengths)


def test_what_is_not_left_out_keeps_its_order_between_the_marks():
    torch.manual_seed(1)
    rows = text_rows(2000, 1, 0, 500)
    left = leave_out(rows, PAD, part=0.25)
    assert left.shape[1] < rows.shape[1]  # padding goes with what was left out
    for row, found in zip(rows, left, strict=True):
        text, shorter = (tokens[tokens != PAD].tolist() for tokens in (row, found))
        assert (shorter[0], shorter[-1]) == (CLS, SEP)
        words = iter(text[1:-1])
        assert all(word in words for word in shorter[1:-1])  # a subsequence
    kept = [int((row != PAD).sum()) - 2 for row in left]
    assert kept[0] == pytest.approx(1500, abs=80)
    assert kept[3] == pytest.approx(375, abs=40)
    assert kept[2] == 0


def test_words_are_left_out_in_training_alone(folder):
    network = network_of(folder, word_dropout=0.5, token_dropout=0.0)
    rows = text_rows(30, 30)
    assert int(network.train().document.encoder(rows)[1].sum()) < 50
    assert int(network.eval().document.encoder(rows)[1].sum()) == 60


@pytest.mark.parametrize(("max_tokens", "learnt"), [(40, True), (12, False)])
def test_a_label_that_hangs_on_a_word_behind_the_first_window_is_learnt(max_tokens, learnt, folder, tmp_path):
    documents = planted_documents(120, words=18, first=10)
    config = encoder_config(
        "transformer",
        folder,
        max_tokens=max_tokens,
        epochs=12,
        learning_rate=0.005,
        encoder_learning_rate=0.005,
        capsule_dropout=0.0,
    )
    model = fitted_labels(tmp_path / "model", config, documents)
    right = right_at_first(model, planted_documents(60, words=18, first=10, seed=2))
    assert right > 0.8 if learnt else right < 0.5  # any label is right for one document in five


def test_the_transformer_has_a_learning_rate_of_its_own(folder, tmp_path, monkeypatch):
    network = network_of(folder, encoder_learning_rate=2e-5)
    settings = TrainingSettings(learning_rate=1e-3, weight_decay=0.1)
    groups = build_optimizers(network, settings)[0].param_groups
    names = {parameter: name for name, parameter in network.named_parameters()}
    for group in groups:
        inside = {names[parameter].startswith("document.encoder.") for parameter in group["params"]}
        assert inside == {group["factor"] == pytest.approx(0.02)}
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0, 0.1, 0.0]
    assert sum(len(group["params"]) for group in groups) == len(names)

    used = []
    step = torch.optim.AdamW.step

    def noted(self, *arguments, **options):
        used.append([group["lr"] for group in self.param_groups])
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    config = encoder_config("transformer", folder, learning_rate=1e-3, encoder_learning_rate=2e-5, epochs=2)
    fitted_labels(tmp_path / "model", config, planted_documents(24, words=5))
    assert len(used) == 6
    for number, rates in enumerate(used):
        heads = loop.learning_rate(number, 6, 1e-3)
        assert rates == pytest.approx([heads, heads, 0.02 * heads, 0.02 * heads])


def test_gradient_checkpointing_gives_the_same_gradients(folder):
    rows = text_rows(25, 7)

    def gradients(checkpointing):
        network = network_of(folder, gradient_checkpointing=checkpointing).train()
        assert network.document.encoder.encoder.transformer.is_gradient_checkpointing == checkpointing
        torch.manual_seed(5)
        network(rows).logits.square().mean().backward()
        return {name: parameter.grad for name, parameter in network.named_parameters()}

    kept, again = gradients(False), gradients(True)
    assert kept.keys() == again.keys()
    for name, gradient in kept.items():
        torch.testing.assert_close(again[name], gradient, msg=name)
