"""torch.vmap over the operators: the mapped dimension goes into the batch; where weights are mapped, one call each."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hkt import _library  # noqa: F401  registers the operators

# Arguments whose first dimension is the batch, by position; the other tensors are weights.
_BATCHED = {"attention": {0, 1, 2, 6}, "multiscale_attention": {0, 1, 2, 5, 10}, "downsample": {0}, "depthwise_conv": {0}}


def _map(argument: Any, dims: Any, change: Callable[[Tensor, int | None], Tensor]) -> Any:
    """``change`` of every tensor of an argument, which is a tensor, a list of them, or neither."""
    if isinstance(argument, (list, tuple)):
        return [_map(x, dim, change) for x, dim in zip(argument, dims, strict=True)]
    return change(argument, dims) if isinstance(argument, Tensor) else argument


def _one(v: int) -> Callable[[Tensor, int | None], Tensor]:
    return lambda x, dim: x if dim is None else x.select(dim, v)


def _rule(operator: Any, batched: set[int]) -> Callable[..., tuple[Tensor, int]]:
    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
        size: int = info.batch_size
        pairs = list(zip(arguments, in_dims, strict=True))
        if any(dims is not None for i, dims in enumerate(in_dims) if i not in batched):
            return torch.stack([operator(*(_map(*pair, _one(v)) for pair in pairs)) for v in range(size)]), 0

        rows = 0

        def fold(x: Tensor, dim: int | None) -> Tensor:
            nonlocal rows
            whole = x.unsqueeze(0).expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            rows = whole.size(1)
            return whole.flatten(0, 1)

        folded = [_map(*pair, fold) if i in batched else pair[0] for i, pair in enumerate(pairs)]
        out: Tensor = operator(*folded)
        return out.reshape(size, rows, *out.shape[1:]), 0

    return rule


for _name, _arguments in _BATCHED.items():
    _operator = getattr(torch.ops.hkt, _name).default
    torch.library.register_vmap(_operator, _rule(_operator, _arguments))
