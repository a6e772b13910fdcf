"""Questions in words whose right answers are known, and models fitted on them as a user fits them."""

import random

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

ASKED = ["where", "when", "who", "why", "how"]
SIGNS = dict(zip(ASKED, ["there", "yesterday", "anna", "because", "thus"], strict=True))
FILLERS = [first + last for first in ("ba", "do", "ki", "lu") for last in ("tan", "vel", "sor", "mip")]
WORDS = [*ASKED, *SIGNS.values(), *FILLERS]


def planted_questions(count, seed=1):
    """The question's first word decides: one of four candidates holds the word that goes with it."""
    draw = random.Random(seed)
    questions = []
    for number in range(count):
        kinds = draw.sample(ASKED, 4)
        candidates = []
        for kind in kinds:
            words = [SIGNS[kind], *draw.sample(FILLERS, draw.randint(2, 5))]
            draw.shuffle(words)
            candidates.append(Candidate(" ".join(words), int(kind == kinds[0])))
        draw.shuffle(candidates)
        text = " ".join([kinds[0], *draw.sample(FILLERS, 2)])
        questions.append(Question(text, tuple(candidates), id=str(number)))
    return questions


def fitted(folder, name, questions, **settings):
    """The model, trained by the doors everyone uses."""
    config = Config.build("answers", name, overrides=settings)
    data = prepare_answers(questions, None, config)
    return fit_answers(data, config, RunFolder(folder), TrainingProgress(quiet=True))
