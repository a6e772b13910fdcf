"""Omikuji's trees are checked before the library reads them, and rank as before once rewritten."""

import json
import shutil

import numpy as np
import pytest

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.omikuji_tree import _encoded, _Reader, check_tree, rewrite_tree

omikuji = pytest.importorskip("omikuji", reason="needs pip install 'nlpcapsule[omikuji]'")

WIDTH, LABELS, DOCUMENTS = 60, 40, 200
DOCUMENT = [(word, 0.1 * (word % 7)) for word in range(0, WIDTH, 3)]


@pytest.fixture(scope="module", params=["deep and dense", "flat and sparse"])
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    draw = np.random.default_rng(1)
    lines = [f"{DOCUMENTS} {WIDTH} {LABELS}"]
    for _ in range(DOCUMENTS):
        words = np.sort(draw.choice(WIDTH, 8, replace=False))
        labels = draw.choice(LABELS, 2, replace=False)
        lines.append(",".join(map(str, labels)) + " " + " ".join(f"{w}:{draw.random():.4f}" for w in words))
    (folder / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = omikuji.Model.default_hyper_param()
    settings.n_trees = 1
    settings.min_branch_size = 5 if "deep" in request.param else 100
    settings.linear_weight_threshold = 0.1 if "deep" in request.param else 0.6
    omikuji.Model.train_on_data(str(folder / "train.txt"), settings).save(str(folder / "tree"))
    return folder / "tree"


@pytest.fixture
def tree(trained, tmp_path):
    tree = shutil.copytree(trained, tmp_path / "tree")
    rewrite_tree(tree)
    return tree


def read(tree):
    return _Reader((tree / "tree0.cbor").read_bytes()).tree()


def leaf(node):
    while "Branch" in node:
        node = node["Branch"]["children"][0]
    return node["Leaf"]


def test_a_rewritten_tree_passes_the_check_and_ranks_as_before(trained, tree):
    before = omikuji.Model.load(str(trained)).predict(DOCUMENT, top_k=LABELS)
    check_tree(tree, WIDTH, LABELS)
    assert omikuji.Model.load(str(tree)).predict(DOCUMENT, top_k=LABELS) == before
    rewritten = (tree / "tree0.cbor").read_bytes()
    rewrite_tree(tree)
    assert (tree / "tree0.cbor").read_bytes() == rewritten


def test_a_tree_with_numbers_of_several_sizes_is_refused(trained):
    with pytest.raises(ModelFolderError, match=r"an array with other than numbers of four bytes at byte \d+"):
        check_tree(trained, WIDTH, LABELS)


def test_every_cut_is_noticed(tree):
    content = (tree / "tree0.cbor").read_bytes()
    for end in range(0, len(content), 97):
        (tree / "tree0.cbor").write_bytes(content[:end])
        with pytest.raises(ModelFolderError, match=r"tree is damaged or belongs to another model"):
            check_tree(tree, WIDTH, LABELS)


def an_index(part):
    weights = part["weights"]
    return weights["Sparse"]["inner_inds"] if "Sparse" in weights else weights["Dense"]["dim"]


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part["labels"].__setitem__(0, LABELS),
        lambda part: part["labels"].__setitem__(0, part["labels"][1]),
        lambda part: part.update(labels=part["labels"][:-1]),
        lambda part: an_index(part).__setitem__(0, 10**6),
        lambda part: part.pop("weights"),
        lambda part: part.update(more=1),
        lambda part: next(iter(part["weights"].values()))["data"].__setitem__(0, np.nan),
    ],
)
def test_numbers_that_lead_outside_are_refused(tree, change):
    node = read(tree)
    change(leaf(node))
    (tree / "tree0.cbor").write_bytes(_encoded(node))
    with pytest.raises(ModelFolderError, match=r"tree is damaged or belongs to another model"):
        check_tree(tree, WIDTH, LABELS)


def test_a_tree_of_another_model_is_refused(tree):
    with pytest.raises(ModelFolderError, match="belongs to another model"):
        check_tree(tree, WIDTH + 1, LABELS)
    with pytest.raises(ModelFolderError, match="labels of a leaf holds a number that is not between"):
        check_tree(tree, WIDTH, LABELS - 1)


def test_more_than_one_tree_and_other_settings_are_refused(tree):
    (tree / "tree1.cbor").write_bytes((tree / "tree0.cbor").read_bytes())
    with pytest.raises(ModelFolderError, match=r"expected settings\.json and tree0\.cbor, found"):
        check_tree(tree, WIDTH, LABELS)
    (tree / "tree1.cbor").unlink()
    settings = json.loads((tree / "settings.json").read_text(encoding="utf-8"))
    (tree / "settings.json").write_text(json.dumps(settings | {"n_features": 10**9}), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"settings\.json is not"):
        check_tree(tree, WIDTH, LABELS)


def test_a_tree_without_an_end_is_refused(tree):
    bomb = b"\xa1\x66Branch\xa1\x68children\x81" * 5_000
    (tree / "tree0.cbor").write_bytes(bomb)
    with pytest.raises(ModelFolderError, match="too deep"):
        check_tree(tree, WIDTH, LABELS)


def test_both_ways_of_storing_weights_are_tried(request, tree):
    kind = "Dense" if "dense" in request.node.name else "Sparse"
    assert kind in leaf(read(tree))["weights"]
