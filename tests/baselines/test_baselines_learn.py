"""The networks of the paper's tables learn: rules that are known, and the labels of real sentences."""

from collections import Counter

import numpy as np
import pytest
import torch

from class_constants import config_of
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.registry import find_system
from nlpcapsule.sample import load_documents
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

WORDS, LENGTH = 20, 12
COMMON_LABELS = 12

# So small that a training takes seconds.
SMALL = {
    "bow-cnn": {"windows": (3,), "filters": 32, "pools": 2, "dropout": 0.0},
    "released-xml-cnn": {"embedding_size": 16, "filters": 8, "bottleneck": 32},
    "released-xml-cnn with ReLU": {"embedding_size": 16, "filters": 8, "bottleneck": 32, "relu": True},
    "cap-zhao A": {"embedding_size": 16, "channels": 4, "capsule_size": 8, "variant": "A"},
    "cap-zhao B": {"embedding_size": 16, "channels": 4, "capsule_size": 8, "variant": "B"},
}
every_network = pytest.mark.parametrize("name", list(SMALL))


def small_config(name, **settings):
    return config_of("labels", name.split()[0], {**SMALL[name], **settings})


def trained(name, tokens, targets, steps):
    """A network trained on one batch for a number of steps."""
    network = build_network(small_config(name, max_tokens=LENGTH), WORDS, label_count=targets.shape[1])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        label_loss("bce", network(tokens).logits, targets).backward()
        optimizer.step()
    return network.eval()


def random_rows(count):
    return torch.randint(1, WORDS, (count, LENGTH), generator=torch.Generator().manual_seed(4))


@every_network
def test_a_label_that_stands_for_a_word_is_learned(name):
    tokens = random_rows(40)
    targets = torch.stack([(tokens == word).any(dim=1) for word in (3, 8)], dim=1).float()
    assert 8 < targets[:, 0].sum() < 32  # or guessing would do
    network = trained(name, tokens, targets, steps=80)
    with torch.no_grad():
        logits = network(tokens).logits
    assert label_loss("bce", logits, targets) < 0.1
    assert torch.equal(logits > 0, targets.bool())


def rows_with_a_pair(count, seed):
    """Every row has the words 1 and 2, in either order; its label says whether they are neighbours."""
    generator = np.random.default_rng(seed)
    rows = generator.integers(3, WORDS, (count, LENGTH))
    neighbours = generator.random(count) < 0.5
    for row, near in zip(rows, neighbours, strict=True):
        start = generator.integers(0, LENGTH - 4)
        row[[start, start + (1 if near else 4)]] = generator.permutation([1, 2])
    return torch.from_numpy(rows), torch.from_numpy(neighbours).float().unsqueeze(1)


def test_bow_cnn_learns_two_words_side_by_side_in_any_order():
    """No single word tells the label, so this takes regions; unseen rows, so it takes the rule."""
    tokens, targets = rows_with_a_pair(200, seed=1)
    network = trained("bow-cnn", tokens, targets, steps=150)
    unseen, expected = rows_with_a_pair(200, seed=2)
    with torch.no_grad():
        assert label_loss("bce", network(tokens).logits, targets) < 0.05
        right = (network(unseen).logits > 0) == expected.bool()
    assert right.float().mean() > 0.9


def common_documents(part, labels, count):
    """Letters of the sample with at least one of these labels, and their other labels left out."""
    kept = (
        Document(row.text, tuple(label for label in row.labels if label in labels))
        for row in load_documents(part)
    )
    return [row for row in kept if row.labels][:count]


QUICK = ("bow-cnn", "released-xml-cnn")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
def test_it_ranks_better_than_the_majority_label_on_the_sample(name, tmp_path):
    counts = Counter(label for row in load_documents("train") for label in row.labels)
    labels = [label for label, _ in counts.most_common(COMMON_LABELS)]
    train, dev = common_documents("train", labels, 500), common_documents("dev", labels, 100)
    fields = find_system(name.split()[0]).settings.model_fields  # a saved model has the class's constants
    sizes = {key: value for key, value in SMALL[name].items() if key in fields}
    schedule = {"max_tokens": 60, "epochs": 8, "learning_rate": 0.005, "batch_size": 16}
    config = Config.build("labels", name.split()[0], overrides={**sizes, **schedule})
    data = prepare_labels(train, None, config)
    model = fit_labels(data, config, RunFolder(tmp_path), TrainingProgress(quiet=True))
    texts = [row.text for row in dev]
    ranked = model.rank(texts, top_k=1)
    precision = np.mean([best.label in row.labels for (best,), row in zip(ranked, dev, strict=True)])
    majority = Counter(label for row in train for label in row.labels).most_common(1)[0][0]
    assert precision > 1.5 * np.mean([majority in row.labels for row in dev])
    assert load_model(tmp_path).rank(texts[:3]) == model.rank(texts[:3])
