"""Settings of the lexical systems: those that see a document as the words it holds."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from nlpcapsule.config.settings import Settings

_OPENING = "first words of a document that are features of their own beside the whole's; 0: none"


class LexicalSettings(Settings):
    """What all of them share."""

    embedding_size: ClassVar[int] = 0  # they have no word vectors
    name: str


class OneVsRestSettings(LexicalSettings):
    """`one-vs-rest`: a linear support vector machine per label, on tf-idf."""

    name: Literal["one-vs-rest"] = "one-vs-rest"
    penalty: float = Field(1.0, gt=0, description="C, the price of a margin that is missed")
    smallest_weight: float = Field(0.01, ge=0, description="weights below this are dropped after training")
    opening: int = Field(0, ge=0, description=_OPENING)


class OmikujiSettings(LexicalSettings):
    """`omikuji`: trees of label clusters with a linear model per node (Parabel, Bonsai), on tf-idf."""

    name: Literal["omikuji"] = "omikuji"
    trees: int = Field(3, ge=1, description="trees whose scores are averaged")
    clusters: int = Field(2, ge=2, description="children of a node: 2 is Parabel, 100 is Bonsai")
    balanced: bool = Field(True, description="children hold equally many labels")
    largest_leaf: int = Field(100, ge=2, description="nodes with fewer labels are not split")
    beam: int = Field(10, ge=1, description="nodes kept per level, and labels per leaf, when ranking")
    opening: int = Field(0, ge=0, description=_OPENING)

    @model_validator(mode="after")
    def _enough_labels_to_split(self) -> Self:
        if self.largest_leaf < self.clusters:  # the library would end the whole process
            raise ValueError(
                f"`largest_leaf` must be at least `clusters` ({self.clusters}). "
                f"Got {self.largest_leaf} instead."
            )
        return self


class FastXMLSettings(LexicalSettings):
    """`fast-xml`: trees whose splits maximise nDCG (Prabhu & Varma 2014), on tf-idf."""

    name: Literal["fast-xml"] = "fast-xml"
    trees: int = Field(50, ge=1, description="trees whose leaves are averaged")
    largest_leaf: int = Field(10, ge=1, description="a node of so many documents or fewer is a leaf")
    kept_labels: int = Field(100, ge=1, description="most frequent labels a leaf keeps")
    penalty: float = Field(4.0, gt=0, description="C of a node's logistic loss: more gives denser nodes")
    bias: float = Field(1.0, ge=0, description="a constant feature's value; 0 leaves it out")


class PDSparseSettings(LexicalSettings):
    """`pd-sparse`: primal and dual sparse, max-margin (Yen et al. 2016), on tf-idf."""

    name: Literal["pd-sparse"] = "pd-sparse"
    l1: float = Field(0.1, ge=0, description="λ, the price of a weight: more gives fewer weights")
    penalty: float = Field(10.0, gt=0, description="C, the price of a margin that is missed")
    passes: int = Field(20, ge=1, description="passes over the training part")


class FastTextSettings(LexicalSettings):
    """`fasttext`: the mean of word vectors and a linear layer (Joulin et al. 2017), by its own library."""

    name: Literal["fasttext"] = "fasttext"
    size: int = Field(50, ge=1, description="numbers in a word vector")
    passes: int = Field(40, ge=1, description="passes over the training part")
    rate: float = Field(0.5, gt=0, description="learning rate")
    loss: Literal["softmax", "ova"] = Field(
        "ova", description="softmax: one of many; ova: each label by itself"
    )


LexicalModelSettings = (
    OneVsRestSettings | OmikujiSettings | FastXMLSettings | PDSparseSettings | FastTextSettings
)

LEXICAL_MODELS: dict[str, type[Settings]] = {
    "one-vs-rest": OneVsRestSettings,
    "omikuji": OmikujiSettings,
    "fast-xml": FastXMLSettings,
    "pd-sparse": PDSparseSettings,
    "fasttext": FastTextSettings,
}
