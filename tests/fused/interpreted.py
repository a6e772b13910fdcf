"""Run the kernels in Triton's interpreter, next to the routings that they stand for; prints differences.

A process of its own: Triton decides when it is imported whether it interprets kernels (TRITON_INTERPRET=1).
"""

import itertools
import json

import torch

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.routing import adaptive_kde, kde_mean_shift
from nlpcapsule.capsules.votes import FormedVotes
from nlpcapsule.fused import mean_shift, mean_shift_backward, mean_shift_forward, pair_votes, row_adam
from nlpcapsule.fused.mean_shift import Options, fused_mean_shift
from nlpcapsule.fused.pair_votes import form_pair_votes
from nlpcapsule.fused.row_adam import update_rows

SIZES = [(3, 5, 7, 4), (2, 8, 5, 16), (2, 3, 1, 20)]  # B, m, n, d
VOTES = [(3, 5, 7, 4), (70, 3, 9, 16), (2, 2, 3, 20)]
EPSILON = 0.05


class Watched:
    """A kernel that counts the launches with the same memory for two arguments."""

    launches, shared = 0, 0

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        def launch(*arguments, **options):
            tensors = [each for each in arguments if isinstance(each, torch.Tensor) and each.numel()]
            places = [each.data_ptr() for each in tensors]
            Watched.launches += 1
            Watched.shared += len(set(places)) < len(places)
            return self.kernel[grid](*arguments, **options)

        return launch


def options(most, adaptive, softmax):
    """Return what the kernels are called with."""
    return Options(most, EPSILON if adaptive else -1.0, softmax, kappa=0.8, alpha=0.9)


def routed(votes, valid, fused, most, adaptive, softmax):
    """Route votes, and return the result and the gradient of the votes."""
    votes = votes.detach().requires_grad_()
    formed = FormedVotes(votes)
    if fused:
        found = fused_mean_shift(formed, options(most, adaptive, softmax), valid)
    else:
        more = {"softmax": softmax, "kappa": 0.8, "alpha": 0.9, "valid": valid}
        found = (
            adaptive_kde(formed, max_iterations=most, eps=EPSILON, **more)
            if adaptive
            else kde_mean_shift(formed, iterations=most, **more)
        )
    pull = torch.linspace(-3, 3, found.capsules.numel()).sin().view(found.capsules.shape)
    ((found.capsules * pull).sum() + found.activations.square().sum()).backward()
    return found, votes.grad


def compare_routing(size, most, adaptive, padded, softmax, scale):
    """Return the largest differences of one case."""
    documents, inputs, outputs, width = size
    votes = (torch.randn(inputs, documents, outputs, width) * scale).transpose(0, 1)  # strided, as formed
    valid = None
    if padded:
        votes = torch.cat([votes, votes], dim=3)[..., :width]  # with gaps
        valid = torch.rand(documents, outputs) > 0.3
        valid[:, 0] = True
    (theirs, their_grad), (ours, our_grad) = (
        routed(votes, valid, fused, most, adaptive, softmax) for fused in (False, True)
    )
    ran = theirs.agreement.shape[1]
    pairs = {
        "capsules": (theirs.capsules, ours.capsules),
        "activations": (theirs.activations, ours.activations),
        "coupling": (theirs.coupling, ours.coupling),
        "iterations": (theirs.iterations, ours.iterations),
        "gradient": (their_grad, our_grad),
        "agreement": (theirs.agreement.nan_to_num(9.0), ours.agreement[:, :ran].nan_to_num(9.0)),
    }
    differences = {name: float((one - other).abs().max()) for name, (one, other) in pairs.items()}
    case = f"{size} {most} iterations, adaptive {adaptive}, padded {padded}, {softmax}, votes of {scale}"
    with torch.no_grad():
        alone = fused_mean_shift(FormedVotes(votes), options(most, adaptive, softmax), valid)
    differences["no gradient"] = float((ours.capsules - alone.capsules).abs().max())
    return {"case": case, "stopped early": int((ours.iterations < most).sum()), **differences}


def compare_votes(size):
    """Return the largest differences of votes for three labels of a table, and of their gradients."""
    documents, inputs, labels, width = size
    transforms = PairTransforms(labels, inputs, width, deviation=0.5, sparse=True)
    capsules, ids = torch.randn(documents, inputs, width), torch.tensor([0, labels // 2, labels - 1])
    found = []
    for form in (lambda u: transforms(u, ids), lambda u: form_pair_votes(u, transforms, ids)):
        u = capsules.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()  # strided
        transforms.rows.grad = None
        votes = form(u).formed
        pull = torch.linspace(-3, 3, votes.numel()).sin().view(votes.shape)
        (votes * pull).sum().backward()
        found.append((votes.detach(), u.grad, transforms.rows.grad.to_dense()))
    names = ("votes", "capsules", "table")
    differences = (float((one - other).abs().max()) for one, other in zip(*found, strict=True))
    return dict(zip(names, differences, strict=True))


def compare_rows():
    """Return the largest difference of a row update."""
    table, squares = torch.randn(6, 5, 3), torch.rand(6, 5, 3)
    rows, gradients = torch.tensor([1, 4]), torch.randn(2, 5, 3)
    moment, expected = squares.clone(), table.clone()
    moment[rows] = 0.9 * moment[rows] + 0.1 * gradients.square()
    expected[rows] -= 0.5 * gradients / (moment[rows].sqrt() + 1e-3)
    update_rows(table, squares, rows, gradients, 0.5, 0.9, 1e-3)
    return max(float((table - expected).abs().max()), float((squares - moment).abs().max()))


def run_trials():
    """Return how many of the trials that are run before the kernels on a GPU run here."""
    trials = [
        *((mean_shift._trial, 5, 4, torch.float32, options(most, False, "leaky")) for most in (1, 3)),
        (mean_shift._trial, 5, 4, torch.bfloat16, options(3, True, "leaky")),
        (pair_votes._trial, 16, 3, 4, torch.float32, torch.float32),
        (row_adam._trial,),
    ]
    for trial, *compiled_for in trials:
        trial("cpu", *compiled_for)
    return len(trials)


torch.manual_seed(0)
mean_shift._SUMMED.update(I=2, J=4)  # several programs and passes, as for many inputs and outputs
for module, names in (
    (mean_shift_forward, ("iterate", "settle")),
    (mean_shift_backward, ("iterate_back", "sum_outputs", "vote_gradients")),
):
    for name in names:
        setattr(module, name, Watched(getattr(module, name)))
cases = itertools.product(SIZES, (1, 2, 4), (False, True), (False, True), ("leaky", "standard"), (0.3, 1.5))
found = [compare_routing(*case) for case in cases]
launches = {"launches": Watched.launches, "sharing": Watched.shared}
formed = [compare_votes(size) for size in VOTES]
others = {"rows": compare_rows(), "trials": run_trials()}
print(json.dumps({"routing": found, "votes": formed, **others, **launches}))
