"""Configurations: what wins over what, and what is refused in which words."""

import subprocess
import sys
from pathlib import Path

import pytest

from docs.write_configuration import render_reference
from nlpcapsule import registry
from nlpcapsule.config import Config, Settings
from nlpcapsule.config.nesting import NESTED, flatten
from nlpcapsule.errors import ConfigError
from nlpcapsule.registry import (
    ANSWER_SYSTEMS,
    ENCODER_MODULES,
    ENCODERS,
    LABEL_SYSTEMS,
    find_system,
    system_names,
)

DOCUMENT = Path(__file__).parents[1] / "docs" / "configuration.md"


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "settings.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refusal(**arguments):
    with pytest.raises(ConfigError) as caught:
        Config.build(**arguments)
    return str(caught.value)


def test_without_arguments_it_is_a_hybrid_of_label_query_on_labels():
    config = Config.build()
    assert (config.task, config.model.name, config.training.loss) == ("labels", "hybrid", "bce")
    assert (config.network.name, config.network.encoder.name) == ("label-query", "convolution")
    assert config.lexical == "auto"
    assert Config.build("answers").model.name == "label-query"


def test_the_network_of_a_hybrid_keeps_its_defaults():
    for network in ("label-query", "paper", "convolution-linear", "transformer-linear"):
        alone = Config.build("labels", network)
        joined = Config.build("labels", overrides={"network": network})
        assert joined.network == alone.model == alone.network
        assert (joined.text, joined.inference) == (alone.text, alone.inference)
        assert joined.training == alone.training.model_copy(update={"dev_fraction": 0.1})
        assert alone.lexical is None


@pytest.mark.parametrize("task", ["labels", "answers"])
def test_the_encoder_brings_the_settings_that_it_has(task):
    for encoder, own in (("convolution", "filters"), ("bilstm", "layers"), ("some/bert", "window")):
        section = Config.build(task, overrides={"encoder": encoder}).network.encoder
        assert own in type(section).model_fields
        assert section.name == (encoder if encoder in ("convolution", "bilstm") else "transformer")
        assert getattr(section, "path", encoder) == encoder


@pytest.mark.parametrize(
    "assignment",
    ["network=paper", "model.network=paper", "network.name=paper", "model.network.name=paper"],
)
def test_the_network_of_a_hybrid_is_chosen_by_its_name(assignment):
    config = Config.build(assignments=[assignment, "capsule_size=8"])
    assert (config.model.name, config.network.name, config.network.capsule_size) == ("hybrid", "paper", 8)


def test_nested_sections_of_a_file(toml):
    file = toml(
        '[model]\nlexical = "omikuji"\n[model.network]\ncondensed = 5\n'
        '[model.network.encoder]\nname = "bilstm"\nlayers = 2\n'
    )
    config = Config.build(file=file, assignments=["layers=3"])
    assert (config.lexical, config.network.condensed) == ("omikuji", 5)
    assert (config.network.encoder.name, config.network.encoder.layers) == ("bilstm", 3)
    paper = Config.build(file=toml('[model.network]\nname = "paper"\nfilters = 7\n'))
    assert (paper.network.name, paper.network.filters) == ("paper", 7)


def test_another_encoder_or_network_replaces_what_a_lower_source_says_of_it(toml):
    file = toml("[model.network]\ncondensed = 5\n[model.network.encoder]\nfilters = 7\nword_dropout = 0.5\n")
    same = Config.build(file=file, assignments=["encoder=convolution"]).network
    assert (same.condensed, same.encoder.filters) == (5, 7)
    other = Config.build(file=file, assignments=["encoder=bilstm"]).network
    assert (other.condensed, other.encoder.name, other.encoder.word_dropout) == (5, "bilstm", 0.0)
    assert Config.build(file=file, assignments=["network=paper"]).network.condensed == 128
    linear = toml('[model]\nname = "transformer-linear"\n[model.encoder]\nwindow = 9\n')
    encoder = Config.build(file=linear, assignments=["encoder=some/bert"]).network.encoder
    assert (encoder.path, encoder.window) == ("some/bert", 9)


@pytest.mark.parametrize(
    "key", ["filters", "encoder.filters", "model.filters", "network.encoder.filters", "model.network.filters"]
)
def test_sections_can_be_left_out_of_a_name(key):
    assert Config.build(overrides={key: 7}).network.encoder.filters == 7


def test_a_short_name_is_looked_for_in_the_model_and_then_in_training():
    config = Config.build(assignments=["batch_size=7", "inference.batch_size=3"])
    assert (config.training.batch_size, config.inference.batch_size) == (7, 3)
    sparse = Config.build("labels", "pd-sparse", assignments=["epochs=7", "training.epochs=3"])
    assert (sparse.model.epochs, sparse.training.epochs) == (7, 3)


def test_a_tenth_is_held_out_for_a_hybrid_and_nothing_for_a_network_alone():
    assert Config().training.dev_fraction == Config.build().training.dev_fraction == 0.1
    assert Config.build("labels", "label-query").training.dev_fraction == 0.0


def declared(settings):
    """The settings that a class declares itself: neither inherited ones, nor names, nor nested sections."""
    own = settings.__annotations__
    return {
        (settings.__qualname__, name)
        for name in settings.model_fields
        if name in own and name not in ("name", *NESTED)
    }


def test_there_are_few_settings():
    sections = [Config.model_fields[name].annotation for name in ("text", "training", "inference")]
    chosen = [find_system(name).settings for name in (*LABEL_SYSTEMS, *ANSWER_SYSTEMS)]
    nested = [kind.model_fields["encoder"].annotation for kind in chosen if "encoder" in kind.model_fields]
    classes = {*sections, *chosen, *nested, *(ENCODERS[name].settings_type for name in ENCODER_MODULES)}
    every = {base for kind in classes for base in kind.__mro__ if issubclass(base, Settings)}
    assert len(set().union(*map(declared, every))) <= 110
    default = Config()
    parts = [default.text, default.training, default.inference, default.model, default.network]
    used = [name for part in (*parts, default.network.encoder) for name in type(part).model_fields]
    # `overlap` is for answers, and refused for labels.
    assert len([name for name in used if name not in ("name", "overlap", *NESTED)]) <= 35


def test_without_arguments_a_configuration_is_the_one_that_build_gives():
    assert Config() == Config.build()
    assert Config(task="answers") == Config.build("answers")
    assert Config(model={"name": "paper"}) == Config.build("labels", "paper")


@pytest.mark.parametrize("model", ["hybrid", "paper", "one-vs-rest"])
def test_the_sections_of_a_configuration_build_the_same_one(model):
    config = Config.build("labels", model, assignments=["max_tokens=77"])
    assert Config(**dict(config)) == config


def test_a_system_of_another_package_replaces_none_of_ours(monkeypatch):
    monkeypatch.setattr(registry.SYSTEMS, "modules", dict(registry.SYSTEMS.modules))
    monkeypatch.setattr(registry, "_entry_points", lambda: {"paper": "elsewhere", "theirs": "their_module"})
    with pytest.raises(ConfigError):
        find_system("unknown")
    found = registry.SYSTEMS.modules
    assert (found["paper"], found["theirs"]) == (LABEL_SYSTEMS["paper"], "their_module")


@pytest.mark.parametrize("key", ["network.name", "encoder.name"])
def test_a_number_in_place_of_a_nested_name_is_told_with_its_section(key):
    assert refusal(assignments=[f"{key}=5"]).startswith(f"{key}=5: expected the name of ")


def test_a_systems_own_defaults_are_taken():
    for name in system_names():
        for task, sections in find_system(name).defaults.items():
            config = Config.build(task, name)
            settled = dict(flatten(config.model_dump(), "config"))
            for setting, value in flatten(sections, "config"):
                assert settled[setting] == value, (name, task, setting)


@pytest.mark.parametrize("task", ["labels", "answers"])
def test_a_transformer_brings_defaults_of_its_own_wherever_it_is_named(task, toml):
    own = find_system("label-query").pretrained_defaults[task]
    configs = [
        Config.build(task, overrides={"encoder": "some/bert"}),
        Config.build(task, assignments=["model.encoder=some/bert"]),
        Config.build(task, "label-query", file=toml('[model]\nencoder = "some/bert"\n')),
        Config.build(task, "label-query", file=toml('[model.encoder]\nname = "transformer"\n')),
    ]
    for config in configs:
        settled = dict(flatten({**config.model_dump(), "model": config.network.model_dump()}, "config"))
        for setting, value in flatten(own, "config"):
            assert settled[setting] == value
    for encoder in ("convolution", "bilstm"):
        config = Config.build(task, overrides={"encoder": encoder})
        assert config.training.epochs == find_system("label-query").defaults[task]["training"]["epochs"]


def test_what_is_given_wins_over_the_transformers_defaults(toml):
    file = toml('[model.network]\nencoder = "some/bert"\n[training]\nepochs = 4\n')
    config = Config.build(file=file, assignments=["max_tokens=77"])
    assert (config.training.epochs, config.text.max_tokens, config.network.encoder.encoder_learning_rate) == (
        4,
        77,
        1e-4,
    )
    small = Config.build(overrides={"encoder": "some/bert"}, preset="small")
    assert (small.training.epochs, small.text.max_tokens) == (16, 500)


def test_a_file_wins_over_defaults_and_a_single_setting_over_the_file(toml):
    file = toml(
        '[model]\nname = "paper"\nfilters = 7\ncondensed = 5\n[training]\nnegatives = "hard"\nepochs = 4\n'
    )
    config = Config.build(file=file, assignments=["condensed=6", "training.epochs=9"])
    assert config.model.name == "paper"
    assert config.model.filters == 7
    assert config.training.negatives == "hard"
    assert (config.model.condensed, config.training.epochs) == (6, 9)
    assert config.training.weight_decay == 0.0  # neither says anything: the network's own default


def test_python_values_win_over_assignments():
    assert Config.build(assignments=["epochs=2"], overrides={"epochs": 3}).training.epochs == 3


@pytest.mark.parametrize("key", ["name", "model.name"])
def test_the_network_can_be_chosen_as_any_other_setting(toml, key):
    file = toml('[model]\nname = "xml-cnn"\n')
    assert Config.build(file=file).model.name == "xml-cnn"
    assert Config.build(file=file, model="kim-cnn").model.name == "kim-cnn"
    config = Config.build(file=file, assignments=[f"{key}=paper", "routing=em"])
    assert (config.model.name, config.model.routing, config.inference.candidates) == ("paper", "em", 200)


@pytest.mark.parametrize(
    ("assignment", "section", "name", "value"),
    [
        ("overlap=false", "network", "overlap", False),
        ("threshold_for=0.8", "inference", "threshold_for", 0.8),
        ("learning_rate = 1e-2", "training", "learning_rate", 0.01),
        ("routing=dot", "network", "routing", "dot"),
        ('routing="kde"', "network", "routing", "kde"),
        ("vectors=/data/a=b.txt", "text", "vectors", "/data/a=b.txt"),
    ],
)
def test_assignments_are_read_as_toml_or_as_a_word(assignment, section, name, value):
    assert getattr(getattr(Config.build(assignments=[assignment]), section), name) == value


@pytest.mark.parametrize("text", ["epochs", "=5", " =5", ""])
def test_an_assignment_without_key_or_value_is_refused(text):
    assert "expected key=value" in refusal(assignments=[text])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "label-quary"}, "unknown model 'label-quary': did you mean 'label-query'?"),
        ({"overrides": {"name": 5}}, "unknown model 5: expected one of"),
        ({"task": "tags"}, "unknown task 'tags': expected 'labels' or 'answers'"),
        ({"assignments": ["epoch=5"]}, "unknown setting 'epoch': did you mean 'training.epochs'?"),
        (
            {"assignments": ["model.epochs=5"]},
            "unknown setting 'model.epochs': did you mean 'training.epochs'?",
        ),
        (
            {"assignments": ["trainign.epochs=5"]},
            "unknown setting 'trainign.epochs': did you mean 'training.epochs'?",
        ),
        ({"model": "kim-cnn", "assignments": ["routing=em"]}, "unknown setting 'routing'"),
        ({"model": "kim-cnn", "assignments": ["encoder=bilstm"]}, "'kim-cnn' has no encoder to choose"),
        (
            {"model": "label-query", "assignments": ["network=paper"]},
            "'label-query' has no network to choose",
        ),
        ({"assignments": ["network=papr"]}, "unknown model 'papr': did you mean 'paper'?"),
        ({"assignments": ["network=5"]}, "network=5: expected a name, or a section of settings"),
        ({"assignments": ["encoder=bilstmm"]}, "unknown encoder 'bilstmm': did you mean 'bilstm'?"),
        ({"assignments": ["network=paper", "encoder=bilstm"]}, "unknown setting model.network.encoder"),
        ({"assignments": ["layers=2"]}, "unknown setting 'layers'"),
        ({"assignments": ["threshold_for=1.5"]}, "expected 'micro-F1', 'macro-F1', or a precision"),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(arguments, message):
    assert message in refusal(**arguments)


def test_all_unknown_names_of_file_and_settings_are_told_at_once(toml):
    file = toml("[trainig]\nepochs = 1\n[model]\nencoder = {}\n[text]\nmax_token = 5\n")
    lines = refusal(file=file, assignments=["seeed=1"]).splitlines()
    assert lines == [
        f"{file}: unknown section [trainig]: did you mean 'training'?",
        f"{file}: unknown setting text.max_token: did you mean 'text.max_tokens'?",
        f"{file}: unknown setting model.encoder: did you mean 'model.network.encoder'?",
        "unknown setting 'seeed': did you mean 'training.seed'?",
    ]


def test_all_impossible_values_are_told_at_once():
    lines = refusal(
        assignments=["epochs=0", "routing=em", "dev_fraction=1.0", "windows=[3, 0]", "learning_rate=nan"]
    ).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "model.network.encoder.windows.1=0",
        "model.network.routing='em'",
        "training.epochs=0",
        "training.learning_rate=nan",
        "training.dev_fraction=1.0",
    ]
    assert "greater than or equal to 1" in lines[2]


@pytest.mark.parametrize("text", ['model = "paper"\n', "training = 5\n"])
def test_a_value_where_a_section_belongs_is_refused(toml, text):
    assert "must be a section" in refusal(file=toml(text))


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert "gone.toml: there is no such configuration file" in refusal(file=tmp_path / "gone.toml")


@pytest.mark.parametrize("content", [b"epochs: 5\n", b"\xff\xfe\x00"])
def test_a_file_that_is_no_toml_is_named(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    assert f"{path}: not a readable TOML file" in refusal(file=path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"assignments": ["loss=pairwise"]}, "does not go with task 'labels'"),
        (
            {"model": "kim-cnn", "assignments": ["label_names=n.json"]},
            "is for 'hybrid' and 'label-query', not",
        ),
        ({"assignments": ["label_names=n.json", "network=paper"]}, "and 'label-query', not 'paper'"),
        ({"assignments": ["network=kim-cnn"]}, "does not score chosen labels"),
        ({"assignments": ["network=hybrid"]}, "does not score chosen labels"),
        ({"task": "answers", "assignments": ["label_names=n.json"]}, "label_names is for task 'labels'"),
        (
            {"model": "label-query", "assignments": ["label_names=n.json", "candidates=5"]},
            "choose --model hybrid",
        ),
        ({"task": "answers", "assignments": ["loss=bce"]}, "does not go with task 'answers'"),
        ({"task": "answers", "model": "official"}, "does not rank answers"),
        ({"task": "answers", "model": "kim-cnn"}, "does not rank answers"),
        ({"task": "answers", "assignments": ["negatives=uniform"]}, "are for task 'labels'"),
        ({"task": "answers", "assignments": ["candidates=50"]}, "are for task 'labels'"),
        ({"model": "kim-cnn", "assignments": ["negatives=batch"]}, "needs a network that routes"),
        ({"model": "xml-cnn", "assignments": ["candidates=50"]}, "needs a network that routes"),
        ({"model": "cap-zhao", "assignments": ["negatives=batch"]}, "routes to chosen labels"),
        ({"model": "cap-zhao", "assignments": ["candidates=50"]}, "routes to chosen labels"),
        ({"model": "convolution-linear", "assignments": ["negatives=batch"]}, "needs a network that routes"),
        (
            {"model": "convolution-linear", "assignments": ["encoder=bilstm"]},
            "'convolution-linear' needs the encoder 'convolution'",
        ),
        (
            {"model": "transformer-linear", "assignments": ["encoder=convolution"]},
            "'transformer-linear' needs a pretrained transformer",
        ),
        (
            {"model": "embedding-linear", "assignments": ["encoder=bilstm"]},
            "'embedding-linear' needs a pretrained transformer",
        ),
        (
            {"model": "transformer-linear", "assignments": ["window=12", "stride=11"]},
            "encoder.stride=11 would leave tokens out",
        ),
        ({"model": "paper", "assignments": ["windows=[2, 301]"]}, "none may be wider"),
        ({"model": "paper", "assignments": ["embedding_size=9", "windows=[10]"]}, "none may be wider"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(arguments, message):
    assert message in refusal(**arguments)


def test_a_wide_filter_may_fit_on_the_vectors_of_a_file():
    config = Config.build(model="paper", assignments=["windows=[2, 200]", "vectors=glove.300d.txt"])
    assert config.model.windows == (2, 200)


@pytest.mark.parametrize(
    ("task", "model"),
    [(task, name) for task in ("labels", "answers") for name in system_names(task)],
)
def test_json_gives_the_same_configuration_back(task, model):
    widths = ["windows=[4]"] if Config.has_setting(task, model, "windows") else []
    config = Config.build(task, model, assignments=["epochs=3", *widths, "learning_rate=0.1"])
    assert Config.from_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("old", "new"), [('"epochs":25', '"epochs":-1'), ('"epochs":25', '"epoch":25'), ("}", "")]
)
def test_damaged_json_is_refused(old, new):
    text = Config.build().model_dump_json()
    assert old in text
    with pytest.raises(ConfigError):
        Config.from_json(text.replace(old, new))


def test_settings_cannot_be_changed_afterwards():
    with pytest.raises(ValueError, match="frozen"):
        Config.build().training.epochs = 5


def test_every_setting_has_a_description_and_a_row_in_the_reference():
    config_text = render_reference()
    sections = [Config.model_fields[name].annotation for name in ("text", "training", "inference")]
    encoders = [ENCODERS[name].settings_type for name in ENCODER_MODULES]
    for settings in [*sections, *encoders, *(find_system(name).settings for name in system_names())]:
        for name, field in settings.model_fields.items():
            if name != "name":
                assert field.description
                assert f"| `{name}` |" in config_text
                assert field.description in config_text


def test_the_reference_tells_values_and_defaults():
    rows = render_reference().splitlines()
    assert "| `epochs` | integer, ≥ 1 | `20` | passes over the training part |" in rows
    assert any(row.startswith("| `windows` | list, each integer, ≥ 1 | `[2, 4, 8]` |") for row in rows)
    assert any(row.startswith("| `tokenizer` | text or none | none |") for row in rows)
    assert any(row.startswith("| `gradient_checkpointing` | `true`, `false` | `false` |") for row in rows)
    assert any(row.startswith("| `network` | section | |") for row in rows)
    assert "| labels | `hybrid` | `training.dev_fraction` | `0.1` |" in rows
    assert "| answers | `label-query` | `model.encoder.filters` | `128` |" in rows


def test_the_documents_page_is_what_the_settings_say():
    command = [sys.executable, "-m", "docs.write_configuration"]
    done = subprocess.run(command, cwd=DOCUMENT.parents[1], capture_output=True, check=True, timeout=300)
    assert done.stdout.decode("utf-8") == render_reference()
    assert DOCUMENT.read_text(encoding="utf-8") == render_reference(), (
        f"run: python -m docs.write_configuration > docs/{DOCUMENT.name}"
    )


def test_a_preset_lies_between_defaults_and_a_users_own_settings(tmp_path):
    usual, small = Config.build(), Config.build(preset="small")
    assert small.network.encoder.filters < usual.network.encoder.filters
    assert small.training.negatives == "hard"
    assert small.lexical == usual.lexical == "auto"
    file = tmp_path / "own.toml"
    file.write_text("[model.network.encoder]\nfilters = 7\n", encoding="utf-8")
    own = Config.build(preset="small", file=file, assignments=["epochs=2"])
    assert (own.network.encoder.filters, own.training.epochs, own.training.negatives) == (7, 2, "hard")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"preset": "smal"}, r"unknown preset 'smal': did you mean 'small'\?"),
        (
            {"preset": "small", "model": "paper"},
            "the preset 'small' is for hybrid of label-query, not paper on labels",
        ),
        ({"preset": "small", "task": "answers"}, "not label-query on answers"),
    ],
)
def test_a_preset_that_does_not_fit_is_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        Config.build(**arguments)


def test_a_preset_is_not_for_a_hybrid_of_another_network():
    with pytest.raises(ConfigError, match="is for hybrid of label-query"):
        Config.build(preset="small", overrides={"network": "paper"})


@pytest.mark.parametrize(("model", "line"), [("label-query", "encoder = 5"), ("hybrid", "network = [1]")])
def test_a_number_in_a_file_in_place_of_a_section_is_named(tmp_path: Path, model: str, line: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[model]\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="expected a name, or a section of settings"):
        Config.build("labels", model, file)
