"""The two causal convolutions of a layer. Both start as PyTorch's Conv1d and Linear do."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from hkt import ops


class Depthwise(nn.Module):
    """Parameters of a depthwise convolution, ``weight`` [d, 1, k] and ``bias`` [d]; whoever owns it applies it."""

    def __init__(self, d_model: int, kernel_size: int, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_model, 1, kernel_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(d_model, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.size(2))  # the fan-in of a depthwise convolution is its width
        for parameter in (self.weight, self.bias):
            nn.init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.weight.size(0)}, kernel_size={self.weight.size(2)}"


class SeparableConv(nn.Module):
    """C^(l), the branch of a hybrid head: depthwise-separable, causal, stride 1. x [B, T_l, d] -> [B, T_l, d]."""

    def __init__(self, d_model: int, kernel_size: int, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.depthwise = Depthwise(d_model, kernel_size, device, dtype)
        self.pointwise = nn.Linear(d_model, d_model, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.hkt.depthwise_conv(x, self.depthwise.weight, self.depthwise.bias)
        out: Tensor = self.pointwise(y)
        return out


class Downsample(nn.Module):
    """One step of the pyramid, GELU(LayerNorm(DSConv(x))). x [B, T, d] -> [B, ceil(T / stride), d]."""

    def __init__(
        self, d_model: int, kernel_size: int, stride: int, device: Any = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.stride = stride
        self.depthwise = Depthwise(d_model, kernel_size, device, dtype)
        self.pointwise = nn.Linear(d_model, d_model, device=device, dtype=dtype)
        self.norm = nn.LayerNorm(d_model, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.downsample(
            x,
            self.depthwise.weight,
            self.depthwise.bias,
            self.pointwise.weight,
            self.pointwise.bias,
            self.norm.weight,
            self.norm.bias,
            stride=self.stride,
            eps=self.norm.eps,
        )

    def extra_repr(self) -> str:
        return f"stride={self.stride}"
