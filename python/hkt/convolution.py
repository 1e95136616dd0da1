"""The two causal convolutions of a layer. Both start as PyTorch's Conv1d and Linear do."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from hkt import ops


class Depthwise(nn.Module):
    """A causal depthwise convolution. x [B, T, d] -> [B, ceil(T / stride), d]; ``weight`` [d, 1, k] and ``bias`` [d]."""

    def __init__(
        self, d_model: int, kernel_size: int, stride: int = 1, device: Any = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(d_model, 1, kernel_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(d_model, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.size(2))  # the fan-in of a depthwise convolution is its width
        for parameter in (self.weight, self.bias):
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.weight, self.bias
        if _own_data(weight) and _own_data(bias):
            y: Tensor = torch.ops.hkt.depthwise_conv(x, weight, bias, self.stride)
            return y
        # k shifted products. (conv1d with groups is two to four times slower on a CPU.)
        T, k = x.size(1), weight.size(2)
        padded = F.pad(x, (0, 0, k - 1, 0)) if k > 1 else x
        y = bias
        for a in range(k):
            y = torch.addcmul(y, padded[:, a : a + T : self.stride], weight[:, 0, a])
        return y

    def extra_repr(self) -> str:
        return f"{self.weight.size(0)}, kernel_size={self.weight.size(2)}, stride={self.stride}"


class SeparableConv(nn.Module):
    """C^(l), the branch of a hybrid head: depthwise-separable, causal, stride 1. x [B, T_l, d] -> [B, T_l, d]."""

    def __init__(self, d_model: int, kernel_size: int, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.depthwise = Depthwise(d_model, kernel_size, 1, device, dtype)
        self.pointwise = nn.Linear(d_model, d_model, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.pointwise(self.depthwise(x))
        return out


class Downsample(nn.Module):
    """One step of the pyramid, GELU(LayerNorm(DSConv(x))). x [B, T, d] -> [B, ceil(T / stride), d].

    One fused operator, which reads the weights; where a submodule is replaced (LoRA, quantisation) or has hooks, the
    submodules are called one after the other instead.
    """

    def __init__(
        self, d_model: int, kernel_size: int, stride: int, device: Any = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.stride = stride
        self.depthwise = Depthwise(d_model, kernel_size, stride, device, dtype)
        self.pointwise = nn.Linear(d_model, d_model, device=device, dtype=dtype)
        self.norm = nn.LayerNorm(d_model, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        depthwise, pointwise, norm = self.depthwise, self.pointwise, self.norm
        if not (_plain(depthwise, Depthwise) and _plain(pointwise, nn.Linear) and _plain(norm, nn.LayerNorm)):
            return F.gelu(norm(pointwise(depthwise(x))))
        return ops.downsample(
            x,
            depthwise.weight,
            depthwise.bias,
            pointwise.weight,
            pointwise.bias,
            norm.weight,
            norm.bias,
            stride=self.stride,
            eps=norm.eps,
        )

    def extra_repr(self) -> str:
        return f"stride={self.stride}"


def _plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether the module does with its weight and bias what its kind does, and nothing else."""
    own = type(module) is kind or (parametrize.is_parametrized(module) and type(module).__bases__ == (kind,))
    hooks = (
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
    if not own or hooks or "forward" in module.__dict__:
        return False
    return _own_data(module.weight) and _own_data(module.bias)


def _own_data(tensor: Any) -> bool:
    """Not so for a tensor with data of its own kind (quantised, distributed), which knows PyTorch's operators only."""
    return isinstance(tensor, Tensor) and not is_traceable_wrapper_subclass(tensor)
