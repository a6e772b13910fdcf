"""A model folder gives back the model that was saved, or an error that says what is wrong with it."""

import json
import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.network_scorer import NetworkScorer
from saved_models import LABELS, QUESTION, TEXTS, answer_model, edit, label_model, seal

SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture
def folder(tmp_path):
    save_model(label_model("paper", candidates=3), tmp_path / "model")
    return tmp_path / "model"


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("label-query", {"candidates": 0}),
        ("label-query", {"candidates": 2, "condensed": 0}),
        ("paper", {"candidates": 3, "routing": "em"}),
        ("official", {"candidates": 0}),
        ("kim-cnn", {}),
        ("xml-cnn", {"bottleneck": 4}),
    ],
)
def test_a_label_model_comes_back_as_it_was(tmp_path, model, settings):
    saved = label_model(model, **settings)
    save_model(saved, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.rank(TEXTS, top_k=4) == saved.rank(TEXTS, top_k=4)
    assert (loaded.config, loaded.facts) == (saved.config, saved.facts)
    assert loaded.labels.ids == LABELS.ids
    assert not loaded.network.training


def test_weights_under_the_names_of_an_earlier_version_are_read(tmp_path):
    saved = label_model(**{"text.label_names": "names.json", "candidates": 0})
    save_model(saved, tmp_path)
    weights = load_file(tmp_path / "network.safetensors")
    earlier = {key.replace("with_examples", "beside_examples"): tensor for key, tensor in weights.items()}
    assert earlier.keys() != weights.keys()
    save_file(earlier, tmp_path / "network.safetensors")
    seal(tmp_path, "network.safetensors")
    assert load_model(tmp_path).rank(TEXTS, top_k=4) == saved.rank(TEXTS, top_k=4)
    both = {key: tensor.clone() for key, tensor in (weights | earlier).items()}
    save_file(both, tmp_path / "network.safetensors")
    seal(tmp_path, "network.safetensors")
    with pytest.raises(ModelFolderError, match="both their current name and an earlier one"):
        load_model(tmp_path)


@pytest.mark.parametrize("model", ["label-query", "paper"])
def test_an_answer_model_comes_back_as_it_was(tmp_path, model):
    saved = answer_model(model)
    save_model(saved, tmp_path)
    assert load_model(tmp_path, device="cpu").rank([QUESTION]) == saved.rank([QUESTION])


def test_saving_twice_writes_the_same_bytes(tmp_path):
    model = label_model("paper", candidates=3)
    for name in ("a", "b"):
        save_model(model, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_model_saved_over_another_is_not_mixed_with_it(folder):
    plain = label_model("kim-cnn")
    save_model(plain, folder)
    loaded = load_model(folder)
    assert type(loaded.scorer) is NetworkScorer
    assert loaded.rank(TEXTS) == plain.rank(TEXTS)
    assert not (folder / "nominator.safetensors").exists()


def test_a_model_saved_over_another_keeps_what_neither_of_them_wrote(folder):
    own = {"metrics.jsonl": "{}", "lexical/notes.txt": "mine", "tensorboard/events": "0"}
    for name, text in own.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    save_model(label_model("kim-cnn"), folder)
    assert {name: (folder / name).read_text(encoding="utf-8") for name in own} == own


def test_a_manifest_cannot_have_files_outside_the_folder_removed(folder, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine", encoding="utf-8")
    outside = {"../mine.txt": "0", str(mine): "0", "..": "0"}
    edit(folder, "manifest.json", lambda manifest: manifest["sha256"].update(outside))
    save_model(label_model("kim-cnn"), folder)
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "names", [["config.json", "labels.json", "lexical/notes.txt"], ["manifest.json"], ["thesis.tex"]]
)
def test_a_folder_with_other_files_is_refused_before_anything_is_touched(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(ModelFolderError, match="holds other files and no model; save into another folder"):
        save_model(label_model(), tmp_path)
    assert contents(tmp_path) == before


def test_the_folder_of_a_training_takes_its_model_and_keeps_the_rest(tmp_path):
    for name in ("checkpoint/run.json", "metrics.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    before = contents(tmp_path)
    save_model(label_model(), tmp_path)
    load_model(tmp_path)
    assert before.items() <= contents(tmp_path).items()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ModelFolderError, match="there is no such model folder"):
        load_model(tmp_path / "nowhere")


def test_a_file_in_place_of_a_folder(tmp_path):
    file = tmp_path / "model"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(ModelFolderError, match="is a file: expected a model folder"):
        load_model(file)
    with pytest.raises(ModelFolderError, match="is a file: expected the name of a folder"):
        save_model(label_model(), file)
    assert file.read_text(encoding="utf-8") == "x"


def test_a_folder_without_a_manifest(tmp_path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"is not a model folder: it has no manifest\.json"):
        load_model(tmp_path)


def test_an_unfinished_training(folder):
    (folder / "manifest.json").unlink()
    (folder / "checkpoint").mkdir()
    with pytest.raises(ModelFolderError, match=r"training has not finished; .* with --resume"):
        load_model(folder)


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "tokenizer.json",
        "labels.json",
        "facts.json",
        "network.safetensors",
        "nominator.safetensors",
    ],
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelFolderError, match=f"the file {re.escape(name)} is missing"):
        load_model(folder)


@pytest.mark.parametrize("name", ["network.safetensors", "nominator.safetensors", "tokenizer.json"])
def test_a_truncated_file_is_named(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelFolderError, match=rf"{re.escape(name)} is not as it was written \(truncated or"):
        load_model(folder)


def test_a_single_changed_bit_is_noticed(folder):
    path = folder / "network.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFolderError, match="not as it was written"):
        load_model(folder)


def test_an_edited_configuration_is_noticed(folder):
    edit(folder, "config.json", lambda config: config["model"].update(iterations=5), reseal=False)
    with pytest.raises(
        ModelFolderError, match=r"config\.json is not as it was written \(truncated or edited\)"
    ):
        load_model(folder)


def test_a_newer_format_says_to_upgrade(folder):
    edit(folder, "manifest.json", lambda manifest: manifest.update(format_version=3, nlpcapsule="9.0"))
    with pytest.raises(
        ModelFolderError, match=r"format version 3, written by nlpcapsule 9\.0; .*pip install"
    ):
        load_model(folder)


def test_an_older_format_says_to_train_again(folder):
    edit(folder, "manifest.json", lambda manifest: manifest.update(format_version=1))
    with pytest.raises(ModelFolderError, match=r"format version 1, .*reads version 2: train the model again"):
        load_model(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format_version": 2, "sha256": 3}', "\N{BOM}"])
def test_a_damaged_manifest(folder, text):
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"manifest\.json is damaged"):
        load_model(folder)


def test_weights_of_other_shapes(folder):
    weights = load_file(folder / "network.safetensors")
    weights["transform"] = torch.zeros(5, 4, 4)
    save_file(weights, folder / "network.safetensors")
    seal(folder, "network.safetensors")
    with pytest.raises(ModelFolderError, match=r"network\.safetensors: these weights do not belong to this"):
        load_model(folder)


def test_weights_of_another_network(folder, tmp_path):
    save_model(label_model("kim-cnn"), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "network.safetensors", folder)
    seal(folder, "network.safetensors")
    with pytest.raises(ModelFolderError, match="these weights do not belong to this configuration"):
        load_model(folder)


def test_weights_that_are_no_safetensors_file(folder):
    (folder / "network.safetensors").write_bytes(b"\x80\x04N.")  # a pickle, as it happens
    seal(folder, "network.safetensors")
    with pytest.raises(ModelFolderError, match="these weights do not belong"):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", lambda config: config["model"].update(colour="red")),
        ("config.json", lambda config: config["training"].update(epochs=0)),
        ("labels.json", lambda rows: rows[0].pop("label")),
        ("tokenizer.json", lambda tokenizer: tokenizer.pop("model")),
    ],
)
def test_files_that_make_no_sense_together(folder, name, change):
    edit(folder, name, change)
    with pytest.raises(ModelFolderError, match="its files do not fit together"):
        load_model(folder)


def test_a_manifest_that_vouches_for_too_little(folder):
    edit(folder, "manifest.json", lambda manifest: manifest["sha256"].pop("facts.json"))
    (folder / "facts.json").unlink()
    with pytest.raises(ModelFolderError, match=r"manifest\.json does not list facts\.json"):
        load_model(folder)


def test_a_full_disk_leaves_the_earlier_model_as_it_was(folder, full_disk):
    before = contents(folder)
    message = r"cannot be saved: .*File too large.*; nothing in it has changed"
    with pytest.raises(ModelFolderError, match=message), full_disk(3000):
        save_model(label_model("kim-cnn"), folder)
    assert contents(folder) == before
    assert all(path in before for path in folder.rglob("*")), "nothing of the new model is left"


def test_a_full_disk_leaves_nothing_in_a_new_folder(tmp_path, full_disk):
    with pytest.raises(ModelFolderError, match="cannot be saved"), full_disk(3000):
        save_model(label_model("kim-cnn"), tmp_path / "model")
    assert contents(tmp_path) == {}


def test_a_model_is_untouched_while_another_is_being_written(folder, monkeypatch):
    from nlpcapsule.model_folder import saving

    def fail(*_):
        raise KeyboardInterrupt

    before = contents(folder)
    monkeypatch.setattr(saving, "save_file", fail)
    with pytest.raises(KeyboardInterrupt):
        save_model(label_model(), folder)
    assert contents(folder) == before


@contextmanager
def cut_at(monkeypatch, step):
    """A block that is cut short right before the step-th change of a name on the disk."""
    done = 0

    def counted(change):
        def changed(*arguments, **options):
            nonlocal done
            done += 1
            if done == step:
                raise KeyboardInterrupt
            return change(*arguments, **options)

        return changed

    with monkeypatch.context() as patched:
        for name in ("replace", "rename", "unlink", "rmdir", "mkdir"):
            patched.setattr(Path, name, counted(getattr(Path, name)))
        for name in ("link", "unlink", "rmdir"):  # what shutil.rmtree calls, too
            patched.setattr(os, name, counted(getattr(os, name)))
        yield


def test_a_save_cut_short_anywhere_leaves_the_earlier_model_or_the_new_one(tmp_path, monkeypatch):
    earlier, new = label_model("paper", candidates=3), label_model("kim-cnn")
    expected = [earlier.rank(TEXTS), new.rank(TEXTS)]
    found = []
    save_model(earlier, tmp_path / "earlier")
    for step in range(1, 200):
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "earlier", folder)
        try:
            with cut_at(monkeypatch, step):
                save_model(new, folder)
        except KeyboardInterrupt:
            found.append(expected.index(load_model(folder).rank(TEXTS)))
        else:
            break
        save_model(earlier, folder)
        assert load_model(folder).rank(TEXTS) == expected[0]
        listed = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sha256"]
        assert {path.name for path in folder.iterdir()} == {*listed, "manifest.json"}, (
            "nothing is left behind"
        )
    assert found == sorted(found), "once the new model is there, it stays"
    assert set(found) == {0, 1}
    assert len(found) > 40


def test_a_first_save_cut_short_is_a_model_or_none_and_can_be_repeated(tmp_path, monkeypatch):
    model = label_model("kim-cnn")
    for step in range(1, 100):
        folder = tmp_path / str(step)
        try:
            with cut_at(monkeypatch, step):
                save_model(model, folder)
        except KeyboardInterrupt:
            with suppress(ModelFolderError):
                assert load_model(folder).rank(TEXTS) == model.rank(TEXTS)
        else:
            break
        save_model(model, folder)
        assert load_model(folder).rank(TEXTS) == model.rank(TEXTS)
    assert step > 30


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(folder, monkeypatch):
    from nlpcapsule.model_folder import loading

    new, read = label_model("kim-cnn"), loading.checked_files
    saved = []

    def replaced_meanwhile(place):
        if not saved:
            saved.append(save_model(new, folder))
            raise ModelFolderError(f"{place} is not as it was written")
        return read(place)

    monkeypatch.setattr(loading, "checked_files", replaced_meanwhile)
    assert load_model(folder).rank(TEXTS) == new.rank(TEXTS)


def test_facts_are_kept_letter_by_letter(tmp_path):
    facts = ModelFacts(threshold=0.1 + 0.2, training_documents=4, data="été", dev={"P@1": 1 / 3})
    save_model(replace(label_model(), facts=facts), tmp_path)
    assert load_model(tmp_path).facts == facts
    written = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))
    assert list(written) == ["training_documents", "data", "threshold", "dev"], "only what is known"


def test_an_unknown_fact_is_refused(folder):
    edit(folder, "facts.json", lambda facts: facts.update(treshold=0.3))
    with pytest.raises(ModelFolderError, match=r"treshold=0\.3 is impossible: unexpected keyword"):
        load_model(folder)


def test_nothing_in_the_package_reads_or_writes_pickles():
    used = re.compile(
        r"\b(?:pickle\.|import pickle|joblib\.(?:load|dump)|dill|"
        r"torch\.load\(|torch\.save\(|allow_pickle=True)"
    )
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if used.search(line)
    ]
    assert found == []


def test_every_array_file_is_read_without_pickles():
    calls = [
        line
        for path in sorted(SOURCE.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "np.load(" in line
    ]
    assert all("allow_pickle=False" in line for line in calls)
