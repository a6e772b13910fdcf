"""Build and restore optimizers: AdamW, and `RowAdam` for sparse gradients."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.fused.row_adam import RowAdam
from nlpcapsule.training.row_updates import row_tables


def build_optimizers(network: nn.Module, settings: TrainingSettings) -> list[torch.optim.Optimizer]:
    """Build the optimizers of a network; their groups have a `factor` on the learning rate.

    AdamW applies weight decay to matrices, not to biases and gains; a module's `own_rate` sets its peak rate.
    Modules with `sparse` gradients get `RowAdam`, which updates only the rows that a step has read.
    """
    factors: dict[nn.Parameter, float] = {}
    sparse_parameters = list(row_tables(network).values())
    for module in network.modules():
        own_rate = getattr(module, "own_rate", None)
        if own_rate is not None:
            factors |= dict.fromkeys(module.parameters(), own_rate / settings.learning_rate)
    rows = set(sparse_parameters)
    parameters = [
        parameter for parameter in network.parameters() if parameter.requires_grad and parameter not in rows
    ]
    groups: list[dict[str, Any]] = []
    for factor in dict.fromkeys([1.0, *factors.values()]):
        alike = [p for p in parameters if factors.get(p, 1.0) == factor]
        for decay, chosen in (
            (settings.weight_decay, [p for p in alike if p.ndim >= 2]),
            (0.0, [p for p in alike if p.ndim < 2]),
        ):
            groups.append({"params": chosen, "weight_decay": decay, "factor": factor})
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)
    ]
    if sparse_parameters:
        torch.sparse.check_sparse_tensor_invariants.disable()  # the default; else torch warns
        group = {"params": sparse_parameters, "factor": 1.0}
        optimizers.append(RowAdam([group], lr=settings.learning_rate))
    return optimizers


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> None:
    """Scale gradients, dense and sparse, so that their norm is at most `max_norm`."""
    values = [_values(parameter) for parameter in parameters if parameter.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(values)))
    torch._foreach_mul_(values, (max_norm / (norm + 1e-6)).clamp(max=1.0))


def _values(parameter: nn.Parameter) -> Tensor:
    """Return the values of a gradient, with duplicate rows summed."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()
    return parameter.grad.values()


def optimizer_states(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return the state of all optimizers, by "optimizer.weight.name"."""
    return {
        f"{number}.{index}.{name}": torch.as_tensor(value).detach().cpu().contiguous()
        for number, optimizer in enumerate(optimizers)
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def restore_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """Restore what `optimizer_states` returned."""
    states: list[dict[int, dict[str, Any]]] = [{} for _ in optimizers]
    for key, tensor in tensors.items():
        number, index, name = key.split(".", 2)
        # RowAdam counts its steps in a plain integer.
        value = tensor if tensor.dim() or tensor.is_floating_point() else int(tensor)
        states[int(number)].setdefault(int(index), {})[name] = value
    for optimizer, state in zip(optimizers, states, strict=True):
        _check_shapes(optimizer, state)
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def _check_shapes(optimizer: torch.optim.Optimizer, state: dict[int, dict[str, Any]]) -> None:
    """Raise a ValueError for the optimizer state of a different network."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, values in state.items():
        if not 0 <= index < len(parameters):
            raise ValueError(f"there is no weight {index}")
        for name, value in values.items():
            if isinstance(value, Tensor) and value.dim() and value.shape != parameters[index].shape:
                raise ValueError(f"{name} of weight {index} has the shape {tuple(value.shape)}")
