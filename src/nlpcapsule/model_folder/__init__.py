"""A trained model on disk.

    MODEL/
      config.json           the configuration
      tokenizer.json        the tokenizer
      labels.json           label names and counts                   (label models)
      network.safetensors   the weights                              (networks)
      lexical/              a lexical system's own files             (where one ranks or nominates)
      fusion.json           the fusion weights                       (where there are both)
      nominator.safetensors the candidate generator's weights        (where there is one)
      transformer.json      a pretrained transformer's configuration (where there is one)
      onnx/                 the network for ONNX Runtime             (after `nlpcapsule export`)
      MODEL_CARD.md         what the model is, for people; not read
      facts.json            threshold, dev metrics, data fingerprint
      manifest.json         format version and a checksum per file: written last

`saving` writes a folder that is complete at every moment, `manifest` lists its files, `loading` reads it,
`checks` verifies that its parts fit together, and `current` finds the current one of several versions. There
is no pickle: opening a model folder never runs code from it or downloads anything. SECURITY.md describes what
is trusted.
"""

# ruff: noqa: F401  names to import from here

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nlpcapsule.model_folder.manifest import LEXICAL, MANIFEST, has_model

if TYPE_CHECKING:
    from nlpcapsule.model_folder.loading import load_model
    from nlpcapsule.model_folder.saving import add_files, finish_interrupted_save, save_model, weights_of

_MODULES = {
    "add_files": "saving",
    "finish_interrupted_save": "saving",
    "load_model": "loading",
    "save_model": "saving",
    "weights_of": "saving",
}


def __getattr__(name: str) -> Any:
    """Import a function, and with most of them torch, on first use."""
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
