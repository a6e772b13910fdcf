"""Small random models, their folders, and edits by somebody who knows how checksums are made."""

import hashlib
import json

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.networks.build import build_network
from nlpcapsule.scoring.build import network_scorer, nominator_config
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.models import AnswerModel, LabelModel

TEXTS = ["rain and wind", "a goal in the last minute", "snow", ""]
QUESTION = Question("who won the match", (Candidate("the last goal"), Candidate("rain and snow")))
TOKENIZER = WordTokenizer.train([*TEXTS, QUESTION.text], vocabulary_size=100, min_count=1)
LABELS = LabelVocabulary(["weather", "sport", "Zürich; été", "winter"], [4, 3, 2, 1])
SIZES = {"max_tokens": 12, "embedding_size": 8, "filters": 4, "capsule_size": 4, "condensed": 3}


def label_model(model="label-query", **settings):
    sizes = SIZES if model in ("label-query", "paper", "official") else {"embedding_size": 8, "filters": 4}
    config = Config.build("labels", model, overrides=sizes | settings)
    network = build_network(
        config, TOKENIZER.size, label_count=len(LABELS), padding_id=TOKENIZER.padding_id
    ).eval()
    nominator = None
    if config.inference.candidates:
        beside = nominator_config(config)
        nominator = build_network(
            beside, TOKENIZER.size, label_count=len(LABELS), padding_id=TOKENIZER.padding_id
        ).eval()
    facts = ModelFacts(threshold=0.4, training_documents=9)
    return LabelModel(config, TOKENIZER, LABELS, network_scorer(config, TOKENIZER, network, nominator), facts)


def answer_model(model="label-query"):
    config = Config.build("answers", model, overrides=SIZES)
    network = build_network(config, TOKENIZER.size, padding_id=TOKENIZER.padding_id).eval()
    return AnswerModel(config, TOKENIZER, network, ModelFacts(epochs_run=1))


def edit(folder, name, change, reseal=True):
    """Changes a JSON file; resealing gives it its new checksum, as somebody who means it might."""
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    change(content)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    if reseal and name != "manifest.json":
        seal(folder, name)


def seal(folder, name):
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    edit(folder, "manifest.json", lambda manifest: manifest["sha256"].update({name: digest}))
