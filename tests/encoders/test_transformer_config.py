"""A saved transformer is built from its sizes alone: nothing is fetched, and no code of others runs."""

import json
import socket

import pytest
from tiny_transformer import write_transformer

from nlpcapsule.encoders import transformer as module
from nlpcapsule.encoders.transformer import TransformerEncoder, tokenizer_file
from nlpcapsule.encoders.transformer_config import believed, loading_saved_model
from nlpcapsule.errors import ConfigError

transformers = pytest.importorskip("transformers", reason="needs pip install 'nlpcapsule[transformers]'")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = write_transformer(tmp_path_factory.mktemp("bert"))
    return json.loads(TransformerEncoder(str(folder), 10, 0, 12).to_json())


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def build(config):
    return TransformerEncoder("no/such-model", 10, 0, 12, config)


def test_what_would_fetch_code_or_kernels_is_dropped(config):
    plain = build(config).transformer.config.to_dict()
    crafted = {
        "auto_map": {"AutoModel": "owner/repository--modeling.Evil", "AutoConfig": "x.Y"},
        "_attn_implementation": "owner/kernel",
        "attn_implementation": "owner/kernel:function",
        "_attn_implementation_internal": "owner/kernel",
        "_experts_implementation": "owner/kernel",
        "backbone": "owner/model",
        "backbone_config": {"model_type": "resnet"},
        "use_pretrained_backbone": True,
        "quantization_config": {"quant_method": "gptq", "bits": 4},
        "_name_or_path": "owner/model",
        "trust_remote_code": True,
        "torch_dtype": "load",
        "return_dict": False,
        "output_hidden_states": True,
    }
    built = build({**config, **crafted})
    assert built.transformer.config.to_dict() == plain
    assert built.transformer.config._attn_implementation in ("eager", "sdpa")
    assert all(parameter.dtype.is_floating_point for parameter in built.parameters())


@pytest.mark.parametrize("model_type", ["timm_backbone", "new", "owner/model", "", None, 7, ["bert"], "Bert"])
def test_only_known_architectures_are_built(config, model_type):
    with pytest.raises(ConfigError, match=r"transformer\.json: the architecture .* is not supported"):
        build({**config, "model_type": model_type})


@pytest.mark.parametrize("broken", [None, [], "bert", 7, {}, {"hidden_size": 4}])
def test_what_is_no_configuration_is_refused(broken):
    with pytest.raises(ConfigError, match=r"transformer\.json is not a transformer's configuration"):
        module._with_random_weights(broken)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_hidden_layers", 10**6),
        ("hidden_size", 10**12),
        ("vocab_size", -(10**12)),
        ("layer_norm_eps", 1e300),
    ],
)
def test_sizes_out_of_bounds_are_refused(config, name, value):
    with pytest.raises(ConfigError, match=rf"transformer\.json: {name}=.* is out of bounds"):
        build({**config, name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_size", "x"), ("hidden_act", "os.system"), ("hidden_size", 7)]
)
def test_values_that_lead_nowhere_are_refused(config, name, value):
    with pytest.raises(ConfigError, match=r"transformer\.json: no transformer can be built from it"):
        build({**config, name: value})


def test_nested_numbers_are_bounded_too():
    with pytest.raises(ConfigError, match="out of bounds"):
        believed({"rope": {"factor": [1, {"x": 1e30}]}}, {"rope"}, "here")


def test_while_a_model_is_loaded_nothing_is_looked_up():
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    with loading_saved_model():
        assert constants.HF_HUB_OFFLINE
        with pytest.raises(ConfigError, match="a saved model brings its transformer along"):
            TransformerEncoder("owner/model", 10, 0, 12)
        with pytest.raises(ConfigError, match="a saved model brings its transformer along"):
            tokenizer_file("owner/model")
    assert before == constants.HF_HUB_OFFLINE


def test_an_unknown_architecture_is_refused_before_it_is_trained(tmp_path):
    folder = write_transformer(tmp_path)
    (folder / "config.json").write_text('{"model_type": "t5"}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"encoder='.*': the architecture 't5' is not supported"):
        TransformerEncoder(str(folder), 10, 0, 12)
