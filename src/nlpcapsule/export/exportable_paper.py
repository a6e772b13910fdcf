"""`paper` without steps that depend on values, which can be exported."""

from __future__ import annotations

import copy
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.routing.adaptive_kde import as_printed
from nlpcapsule.capsules.routing.kde_mean_shift import MeanShiftState, mean_shift
from nlpcapsule.capsules.routing.kernel import VoteKernel
from nlpcapsule.capsules.routing.routed import activation, log_of_sum
from nlpcapsule.capsules.votes import PairwiseVotes, Votes
from nlpcapsule.networks.paper import PaperNetwork, PaperSettings, form_votes
from nlpcapsule.networks.routing_choice import route
from nlpcapsule.networks.scored import Scored, log_odds


class ExportablePaper(nn.Module):
    """The paper's network for documents of one length; adaptive routing runs to its limit."""

    def __init__(self, network: PaperNetwork) -> None:
        super().__init__()
        self.network = copy.deepcopy(network)

    def forward(self, tokens: Tensor, candidates: Tensor | None = None) -> Scored:
        """Map token ids (B, l) and label ids (B, C), or None for all labels, to logits (B, C)."""
        network, document = self.network, self.network.document
        length = document.convolution.length
        padded = F.pad(tokens, (0, length), value=document.padding_id)[:, :length]
        capsules = document(padded)  # (B, m, d)
        votes: Votes
        if isinstance(network.transform, PairTransforms):
            votes = PairwiseVotes(capsules, network.transform.gather(candidates))
        else:
            votes = form_votes(capsules, network.transform, candidates)
        if network.settings.is_adaptive:
            return Scored(log_odds(adaptive_activations(votes, network.settings)))
        return Scored(log_odds(route(votes, network.settings, network.em_costs).activations))


def adaptive_activations(votes: Votes, settings: PaperSettings) -> Tensor:
    """Return the activations (B, n) of `adaptive_kde`: all documents iterate, stopped ones keep their v."""
    literal = settings.routing == "adaptive-kde-literal"
    kernel = VoteKernel.of(votes, kappa=None if literal else settings.kappa)
    iterate = partial(
        as_printed if literal else mean_shift,
        softmax=settings.softmax,
        kappa=settings.kappa,
        alpha=settings.alpha,
    )
    state: MeanShiftState | None = None
    kept = running = last = None
    for iteration in range(1, settings.most_iterations + 1):
        now = iterate(kernel, state, None, is_last=iteration == settings.most_iterations)
        scores = log_of_sum(now.agreement)  # (B,)
        if kept is None or running is None or last is None:
            kept, running = now.capsules, torch.ones_like(scores, dtype=torch.bool)
        else:
            kept = torch.where(running[:, None, None], now.capsules, kept)
            running = running & ((scores - last).abs() >= settings.epsilon)
        state, last = now.state, scores
    assert kept is not None
    return activation(kept)
