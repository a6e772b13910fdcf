"""A model folder may come from anywhere: what is wrong with it is said in words, before it does harm."""

import hashlib
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import load_file, save_file

from nlpcapsule.errors import ModelFolderError, NlpCapsuleError
from nlpcapsule.model_folder import load_model, save_model
from saved_models import edit, label_model, seal


@pytest.fixture
def folder(tmp_path):
    save_model(label_model("paper", candidates=3), tmp_path / "model")
    return tmp_path / "model"


def test_a_manifest_without_checksums_vouches_for_nothing(folder):
    edit(folder, "manifest.json", lambda manifest: manifest.update(sha256={}))
    with pytest.raises(
        ModelFolderError, match=r"does not belong to the model: manifest\.json does not list it"
    ):
        load_model(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "labels.json", "network.safetensors", "nominator.safetensors"]
)
def test_a_file_that_is_not_listed_is_refused(folder, name):
    edit(folder, "manifest.json", lambda manifest: manifest["sha256"].pop(name))
    with pytest.raises(ModelFolderError, match=rf"{re.escape(name)} does not belong to the model"):
        load_model(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "lexical/whole-words.safetensors", "lexical/.hidden"])
def test_a_file_that_is_added_is_refused(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"")
    with pytest.raises(ModelFolderError, match=r"does not belong to the model.*move it to another folder"):
        load_model(folder)


@pytest.mark.parametrize("name", ["fusion.txt", "transformer.json", "lexical/one-vs-rest.safetensors"])
def test_a_listed_file_that_the_model_does_not_read_is_refused(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"{}")
    seal(folder, name)
    with pytest.raises(ModelFolderError, match=rf"lists '{name}', which this model does not read; restore"):
        load_model(folder)


@pytest.mark.parametrize("kind", [torch.int64, torch.float64, torch.float16])
@pytest.mark.parametrize("name", ["network.safetensors", "nominator.safetensors"])
def test_weights_of_another_type_are_refused_and_not_converted(folder, name, kind):
    weights = load_file(folder / name)
    first = next(key for key, tensor in weights.items() if tensor.is_floating_point())
    save_file({**weights, first: weights[first].to(kind)}, folder / name)
    seal(folder, name)
    with pytest.raises(ModelFolderError, match=rf"{name}: .*: {kind} and not torch.float32"):
        load_model(folder)


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "README.md", "tensorboard/network/events", "checkpoint/run.json", ".git/config"]
)
def test_what_a_training_or_its_owner_leaves_in_the_folder_is_no_harm(folder, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"")
    load_model(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/etc/passwd",
        "a/../../outside",
        "..\\outside",
        "C:\\outside",
        "./config.json",
        "a//b",
        "",
        ".",
    ],
)
def test_a_name_outside_the_folder_is_refused(folder, name):
    checksum = hashlib.sha256(b"x").hexdigest()
    folder.with_name("outside").write_bytes(b"x")
    edit(folder, "manifest.json", lambda manifest: manifest["sha256"].update({name: checksum}))
    with pytest.raises(
        ModelFolderError, match=r"manifest\.json is damaged \(it lists .*no name of a file inside"
    ):
        load_model(folder)


def test_a_link_out_of_the_folder_is_refused(folder):
    outside = folder.with_name("outside.json")
    (folder / "labels.json").rename(outside)
    (folder / "labels.json").symlink_to(outside)
    with pytest.raises(ModelFolderError, match=r"labels\.json is a link to a file outside"):
        load_model(folder)


def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder):
    (folder / "labels.json").unlink()
    os.mkfifo(folder / "labels.json")
    with pytest.raises(ModelFolderError, match=r"the file labels\.json is missing"):
        load_model(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1].update(label="weather"), "a label is there twice"),
        (lambda rows: rows[3].update(documents=-1), "row 4 is no label with its documents"),
        (lambda rows: rows[3].update(documents=True), "row 4 is no label"),
        (lambda rows: rows[3].update(documents=0.5), "row 4 is no label"),
        (lambda rows: rows[3].update(label=7), "row 4 is no label"),
        (lambda rows: rows[3].update(label=" "), "row 4 is no label"),
        (lambda rows: [row.update(name="") for row in rows], "row 1 is no label"),
        (lambda rows: rows[3].update(colour="red"), "row 4 is no label"),
        (lambda rows: rows[0].update(documents=10**9), "more than the 9 documents"),
        (lambda rows: rows[0].update(documents=2**70), "row 1 is no label"),
        (lambda rows: rows[0].update(name="Weather"), "some labels have a name and some have none"),
        (lambda rows: rows.reverse(), "not in their order"),
        (lambda rows: rows.clear(), "expected a list of labels"),
        (lambda rows: rows.pop(), r"network\.safetensors: these weights do not belong"),
    ],
)
def test_labels_that_cannot_be_are_refused(folder, change, message):
    edit(folder, "labels.json", change)
    with pytest.raises(ModelFolderError, match=message):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", 1.5),
        ("threshold", "0.5"),
        ("threshold", True),
        ("training_documents", -1),
        ("training_documents", 10**30),
        ("dev", {"P@1": "high"}),
        ("dev", []),
        ("data", 7),
        ("embedding_size", 0.5),
    ],
)
def test_facts_that_cannot_be_are_refused(folder, name, value):
    edit(folder, "facts.json", lambda facts: facts.update({name: value}))
    with pytest.raises(ModelFolderError, match=rf"facts\.json: {name}=.* is impossible"):
        load_model(folder)


@pytest.mark.parametrize("name", ["network.safetensors", "nominator.safetensors"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(folder, name, value):
    weights = load_file(folder / name)
    next(iter(weights.values())).view(-1)[0] = value
    save_file(weights, folder / name)
    seal(folder, name)
    with pytest.raises(ModelFolderError, match=rf"{re.escape(name)}: .* infinite or NaN"):
        load_model(folder)


def test_a_nominator_that_is_missing_is_missed(folder):
    (folder / "nominator.safetensors").unlink()
    edit(folder, "manifest.json", lambda manifest: manifest["sha256"].pop("nominator.safetensors"))
    with pytest.raises(ModelFolderError, match="the network that nominates the candidates is missing"):
        load_model(folder)


def test_a_far_larger_network_takes_no_memory(folder):
    edit(folder, "config.json", lambda config: config["model"].update(filters=2**14, capsule_size=2**14))
    with pytest.raises(ModelFolderError, match="the settings ask for a far larger network"):
        load_model(folder)


@pytest.mark.parametrize(("name", "value"), [("iterations", 10**6), ("capsule_size", 10**12)])
def test_settings_that_would_take_for_ever_are_refused(folder, name, value):
    edit(folder, "config.json", lambda config: config["model"].update({name: value}))
    with pytest.raises(ModelFolderError, match=rf"config\.json: model\.{name}={value}: expected at most"):
        load_model(folder)


@pytest.mark.parametrize(
    "name", ["manifest.json", "config.json", "labels.json", "facts.json", "tokenizer.json"]
)
@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a": 1, "a": 1}', "7" * 5000, '["\\ud83d"]', "NaN"],
)
def test_json_that_has_no_reading_is_refused(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    if name != "manifest.json":
        seal(folder, name)
    with pytest.raises(ModelFolderError, match="is damaged" if name == "manifest.json" else "do not fit"):
        load_model(folder)


def test_a_tokenizer_with_an_id_beyond_all_measure_is_refused(folder):
    edit(folder, "tokenizer.json", lambda tokenizer: tokenizer["model"]["vocab"].update(snow=2**31))
    with pytest.raises(ModelFolderError, match=r"a token with the id 2,147,483,648"):
        load_model(folder)


def test_a_lack_of_memory_is_said_in_words(folder, monkeypatch):
    from nlpcapsule.model_folder import loading

    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr(loading, "load_file", fail)
        with pytest.raises(ModelFolderError, match="the model needs more memory than there is"):
            load_model(folder)


def test_a_transformer_that_is_not_in_the_folder_is_not_looked_for(tmp_path, monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("the network was used")

    save_model(label_model(candidates=0), tmp_path / "model")
    edit(tmp_path / "model", "config.json", lambda config: config["model"].update(encoder="owner/model"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ModelFolderError, match=r"manifest\.json does not list transformer\.json"):
        load_model(tmp_path / "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_manifest_that_is_a_pipe_or_a_link_is_not_read(folder):
    manifest = folder / "manifest.json"
    content = manifest.read_bytes()
    manifest.unlink()
    os.mkfifo(manifest)
    with pytest.raises(ModelFolderError, match=r"manifest\.json is damaged \(is not a plain file\)"):
        load_model(folder)
    manifest.unlink()
    (folder.parent / "elsewhere.json").write_bytes(content)
    manifest.symlink_to(folder.parent / "elsewhere.json")
    with pytest.raises(ModelFolderError, match=r"manifest\.json is a link"):
        load_model(folder)


def test_an_interrupted_save_that_is_a_link_is_neither_read_nor_followed(folder, tmp_path):
    other = tmp_path / "other"
    save_model(label_model("kim-cnn"), other)
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    (folder / ".nlpcapsule-saved").symlink_to(other)
    assert load_model(folder).config.model.name == "paper"
    save_model(label_model("xml-cnn"), folder)
    assert load_model(folder).config.model.name == "xml-cnn"
    assert not (folder / ".nlpcapsule-saved").is_symlink()
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before


def test_a_tokenizer_that_makes_texts_many_times_longer_is_refused(folder):
    bomb = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1_000}

    def grow(tokenizer):
        tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [bomb] * 3}

    edit(folder, "tokenizer.json", grow)
    with pytest.raises(ModelFolderError, match="its normalizers make a text many times longer"):
        load_model(folder)


def test_weights_that_lead_to_no_number_later_are_said_in_words(tmp_path):
    save_model(label_model("label-query"), tmp_path / "model")
    model = load_model(tmp_path / "model")
    with torch.no_grad():
        next(model.network.parameters()).fill_(float("nan"))
    with pytest.raises(NlpCapsuleError, match="scores that are NaN: its weights are damaged"):
        model.rank_tokens(model.encode(["a letter"]), top_k=2)


def test_threads_that_load_leave_the_hub_as_it_was(folder):
    constants = pytest.importorskip("huggingface_hub").constants
    before = constants.HF_HUB_OFFLINE
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(load_model, [folder] * 16))
    assert before == constants.HF_HUB_OFFLINE
