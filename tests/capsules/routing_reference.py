"""The routings once more, slow and plain: one document, loops over i and j, every vote formed.

Each function takes one document's votes, a tensor (m, n, d), and returns what a routing returns for it.
Nothing is imported from the package, and gradients are autograd's.
"""

import math
from dataclasses import dataclass

import torch

TINY = torch.finfo(torch.float64).tiny


@dataclass
class Reference:
    capsules: torch.Tensor  # (n, d)
    activations: torch.Tensor  # (n,)
    scores: list[float]
    coupling: torch.Tensor  # (m, n)


def squash(x, kappa=1.0):
    squared = (x * x).sum()
    if squared == 0:
        return x * 0.0
    return squared / (kappa + squared) * x / squared.sqrt()


def softmax(logits, kind):
    """Rows of logits (a list of m lists of n) -> rows of couplings."""
    rows = []
    for row in logits:
        powers = [torch.exp(logit) for logit in row]
        total = sum(powers) + (1.0 if kind == "leaky" else 0.0)
        rows.append([power / total for power in powers])
    return rows


def table(votes, value=0.0):
    m, n, _ = votes.shape
    return [[torch.tensor(value, dtype=torch.float64) for _ in range(n)] for _ in range(m)]


def matrix(rows):
    return torch.stack([torch.stack(row) for row in rows])


def log(total):
    return math.log(total.item() + TINY)


def length(v):
    return v.norm() if (v != 0).any() else v.sum() * 0.0


def finished(capsules, scores, coupling, activations=None):
    lengths = torch.stack([length(v) for v in capsules]) if activations is None else activations
    return Reference(torch.stack(capsules), lengths.clamp(max=1 - 2.3e-16), scores, matrix(coupling).detach())


def dynamic(votes, iterations=3, kind="standard", kappa=1.0):
    m, n, _ = votes.shape
    b, scores = table(votes), []
    for _ in range(iterations):
        c = softmax(b, kind)
        capsules = [squash(sum(c[i][j] * votes[i, j] for i in range(m)), kappa) for j in range(n)]
        total = sum(c[i][j] * (votes[i, j] @ capsules[j]) for i in range(m) for j in range(n))
        scores.append(log(total))
        b = [[b[i][j] + votes[i, j] @ capsules[j] for j in range(n)] for i in range(m)]
    return finished(capsules, scores, c)


def em(votes, iterations=3, kind="standard", beta_u=0.0, beta_a=0.0, inverse_temperature=0.01, floor=1e-3):
    m, n, d = votes.shape
    shares, scores = softmax(table(votes), kind), []
    for t in range(1, iterations + 1):
        means, variances, activations = [], [], []
        for j in range(n):
            mass = sum(shares[i][j] for i in range(m))
            mean = sum(shares[i][j] * votes[i, j] for i in range(m)) / mass
            variance = sum(shares[i][j] * (votes[i, j] - mean) ** 2 for i in range(m)) / mass
            variance = variance.clamp(min=floor)
            cost = sum((beta_u + torch.log(variance[h].sqrt())) * mass for h in range(d))
            rising = inverse_temperature * (1 - 0.95**t)
            activations.append(torch.sigmoid(rising * (beta_a - cost)))
            means.append(mean)
            variances.append(variance)
        log_density = [
            [
                torch.distributions.Normal(means[j], variances[j].sqrt()).log_prob(votes[i, j]).sum()
                for j in range(n)
            ]
            for i in range(m)
        ]
        pairs = [(i, j) for i in range(m) for j in range(n)]
        total = sum(shares[i][j] * log_density[i][j] for i, j in pairs)
        scores.append((total / sum(shares[i][j] for i, j in pairs)).item())
        used = shares
        shares = softmax(
            [[torch.log(activations[j]) + log_density[i][j] for j in range(n)] for i in range(m)], kind
        )
    return finished(means, scores, used, torch.stack(activations))


def kernel(vote, capsule, clamp=True):
    value = 1.0 - ((vote - capsule) ** 2).sum()
    return value.clamp(min=0.0) if clamp else value


def kde_em(votes, iterations=3, kind="standard", kappa=1.0):
    m, n, _ = votes.shape
    r, scores = softmax(table(votes), kind), []
    for _ in range(iterations):
        mass = [sum(r[i][j] for i in range(m)) for j in range(n)]
        capsules = [
            squash(sum(r[i][j] * votes[i, j] for i in range(m)) / mass[j], kappa)
            if mass[j] > 0
            else votes[0, j] * 0
            for j in range(n)
        ]
        k = [[kernel(squash(votes[i, j], kappa), capsules[j]) for j in range(n)] for i in range(m)]
        total = sum(r[i][j] / mass[j] * k[i][j] for i in range(m) for j in range(n) if mass[j] > 0)
        scores.append(log(total))
        used, r = r, []
        for i in range(m):
            row = [mass[j] / m * k[i][j] for j in range(n)]
            total = sum(row) + (1.0 if kind == "leaky" else 0.0)
            r.append([share / total if total > 0 else share for share in row])
    return finished(capsules, scores, used)


def adaptive_kde(votes, iterations=10, kind="leaky", kappa=1.0, alpha=1.0, eps=0.05, clamp=True):
    """SPEC's section 2, line by line."""
    m, n, _ = votes.shape
    b, last, x, scores = table(votes), float("inf"), None, []
    for _ in range(iterations):
        c = softmax(b, kind)
        capsules = []
        w = table(votes)
        for j in range(n):
            inside = [x is None or not clamp or bool(x[i][j] < 1) for i in range(m)]
            if not any(inside):
                inside = [True] * m
            total = sum(c[i][j] for i in range(m) if inside[i])
            for i in range(m):
                w[i][j] = c[i][j] / total if inside[i] else c[i][j] * 0.0
            capsules.append(squash(sum(w[i][j] * votes[i, j] for i in range(m)), kappa))
        x = [[((squash(votes[i, j], kappa) - capsules[j]) ** 2).sum() for j in range(n)] for i in range(m)]
        k = [[(1.0 - x[i][j]).clamp(min=0.0) if clamp else 1.0 - x[i][j] for j in range(n)] for i in range(m)]
        b = [[b[i][j] + alpha * k[i][j] for j in range(n)] for i in range(m)]
        total = sum(w[i][j] * k[i][j] for i in range(m) for j in range(n))
        scores.append(log(total.clamp(min=0.0)))
        if abs(scores[-1] - last) < eps:
            break
        last = scores[-1]
    return finished(capsules, scores, c)


def kde_mean_shift(votes, iterations=3, kind="leaky", kappa=1.0, alpha=1.0):
    return adaptive_kde(votes, iterations, kind, kappa, alpha, eps=0.0)


def literal_kde(votes, iterations=10, kind="leaky", alpha=1.0, eps=0.05):
    """Algorithm 1, line by line."""
    m, n, _ = votes.shape
    c, last, x, scores = table(votes, 1.0 / n), float("inf"), None, []
    for _ in range(iterations):
        c = softmax(c, kind)
        used = c
        capsules = []
        for j in range(n):
            inside = [i for i in range(m) if x is None or x[i][j] < 1] or list(range(m))
            capsules.append(sum(c[i][j] * votes[i, j] for i in inside) / len(inside))
        x = [[((votes[i, j] - capsules[j]) ** 2).sum() for j in range(n)] for i in range(m)]
        k = [[(1.0 - x[i][j]).clamp(min=0.0) for j in range(n)] for i in range(m)]
        c = [[c[i][j] + alpha * k[i][j] for j in range(n)] for i in range(m)]
        total = sum(c[i][j] * k[i][j] for i in range(m) for j in range(n))
        scores.append(log(total))
        if abs(scores[-1] - last) < eps:
            break
        last = scores[-1]
    return finished(capsules, scores, used)


def route_labels(capsules, logits, agreement, gate, iterations, project=None, eps=0.05, reach=1.0):
    """One document of the label-query routing: capsules (m, d), logits (n, m) -> v, scores, coupling."""
    m, d = capsules.shape
    n = logits.shape[0]
    logits = [[logits[j, i] for i in range(m)] for j in range(n)]
    last, scores = float("inf"), []
    for _ in range(iterations):
        coupling = softmax(logits, "standard")
        labels = [sum(coupling[j][i] * capsules[i] for i in range(m)) for j in range(n)]
        if agreement == "dot":
            agreed = [[project(labels[j]) @ capsules[i] / d**0.5 for i in range(m)] for j in range(n)]
            gain = gate
        else:
            agreed = [
                [
                    (1.0 - ((capsules[i] - labels[j]) ** 2).sum() / (reach * d)).clamp(min=0.0)
                    for i in range(m)
                ]
                for j in range(n)
            ]
            gain = gate * 10.0
        mean = sum(coupling[j][i] * agreed[j][i] for j in range(n) for i in range(m)) / n
        scores.append(mean.item() if agreement == "dot" else log(mean))
        logits = [[logits[j][i] + gain * agreed[j][i] for i in range(m)] for j in range(n)]
        if agreement == "adaptive-kde" and abs(scores[-1] - last) < eps:
            break
        last = scores[-1]
    return torch.stack(labels), scores, matrix(coupling)
