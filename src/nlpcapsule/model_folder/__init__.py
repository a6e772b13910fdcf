"""A trained model on disk.

    MODEL/
      config.json           the configuration
      tokenizer.json        the tokenizer
      labels.json           label names and counts                   (label models)
      network.safetensors   the weights                              (networks)
      lexical/              a lexical system's own files             (where one ranks or nominates)
      fusion.json           how its score joins the network's        (where there are both)
      nominator.safetensors the candidate generator's weights        (where there is one)
      transformer.json      a pretrained transformer's configuration (where there is one)
      facts.json            threshold, dev figures, data fingerprint
      manifest.json         format version and a checksum per file: it vouches for the rest

`saving` writes a folder that is whole at every moment, `manifest` says which files belong to it, `loading`
reads it, and `checks` proves that what was read fits together. No pickle anywhere: opening a model folder
never runs code from it, and nothing is fetched for it. SECURITY.md says what is trusted.
"""

from nlpcapsule.model_folder.loading import load_model
from nlpcapsule.model_folder.manifest import LEXICAL, MANIFEST, has_model
from nlpcapsule.model_folder.nominator import nominator_config
from nlpcapsule.model_folder.saving import finish_interrupted_save, save_model, weights_of

__all__ = [
    "LEXICAL",
    "MANIFEST",
    "finish_interrupted_save",
    "has_model",
    "load_model",
    "nominator_config",
    "save_model",
    "weights_of",
]
