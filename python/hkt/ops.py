"""The operators of libhkt_ops with types and documentation; the same as torch.ops.hkt.*."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hkt import _checks, _library, _vmap  # noqa: F401  registers the operators, and how vmap maps them

# Looked up once: a look-up costs as much as the call.
_attention = torch.ops.hkt.attention.default
_downsample = torch.ops.hkt.downsample.default
_WEIGHTS = "x depthwise_weight depthwise_bias pointwise_weight pointwise_bias norm_weight norm_bias".split()


def attention(
    queries: Sequence[Tensor],
    keys: Sequence[Tensor],
    value: Tensor,
    *,
    stride: int = 2,
    scale: float | None = None,
    causal: bool = True,
    lengths: Tensor | None = None,
) -> Tensor:
    """Multi-scale attention, ``softmax(scale * sum_l Up(Q_l K_l^T)) V``: one softmax over scores of several resolutions.

    B batch, H query heads, Hkv key and value heads (a divisor of H), T tokens, T_l = ceil(T_{l-1} / stride) positions of
    level l, D and Dv widths of a head. Fusion weights, where there are any, are already folded into the queries.

    Args:
        queries: a tensor [B, H, T_l, D] a level; float32, float64, bfloat16 or float16, any strides.
        keys: a tensor [B, Hkv, T_l, D] a level, of the same type.
        value: [B, Hkv, T, Dv], of the same type.
        stride: tokens a position of the next level stands for, at least 2.
        scale: finite factor on the scores; 1 / sqrt(D) where it is None.
        causal: row i sees keys j <= i only.
        lengths: int64 [B], 0 ... T: valid tokens of each sequence, padding on the right. Keys in the padding get no
            weight, rows there are 0, and what stands in it, NaN included, changes nothing.

    Returns:
        [B, H, T, Dv], laid out as [B, T, H, Dv] memory.

    Raises:
        ValueError: a wrong rank, size, device or value.
        TypeError: a wrong type of tensor, None for the value, or ``causal`` that is neither True nor False.
        RuntimeError: another argument that is no tensor, or no list of tensors.

    Source: G. Cirrincione, arXiv 2604.08829; docs/operators.md.
    """
    if value is None:  # PyTorch takes it for a tensor without a shape
        raise TypeError("value is None; it must be a tensor [B, Hkv, T, Dv]")
    _checks.flag("causal", causal)
    if scale is not None:
        scale = _checks.finite("scale", scale)
    for name, levels in (("queries", queries), ("keys", keys)):
        if isinstance(levels, (list, tuple)):
            for l, level in enumerate(levels):
                _checks.operand(f"{name}[{l}]", level)
    _checks.operand("value", value)
    out: Tensor = _attention(queries, keys, value, stride, scale, causal, lengths)
    return out


def downsample(
    x: Tensor,
    depthwise_weight: Tensor,
    depthwise_bias: Tensor,
    pointwise_weight: Tensor,
    pointwise_bias: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    *,
    stride: int = 2,
    eps: float = 1e-5,
) -> Tensor:
    """The next level of the pyramid, ``GELU(LayerNorm(pointwise(depthwise(x))))``, the convolution causal and strided.

    Args:
        x: [B, T, d]; float32, float64, bfloat16 or float16, any strides.
        depthwise_weight: [d, 1, k]; position tau reads tokens tau*stride - (k-1) ... tau*stride.
        depthwise_bias: [d].
        pointwise_weight: [d, d].
        pointwise_bias: [d].
        norm_weight: [d].
        norm_bias: [d]. All weights are of x's type, or float32 beside a 16-bit x.
        stride: at least 1.
        eps: of the LayerNorm, at least 0.

    Returns:
        [B, ceil(T / stride), d], contiguous.

    Raises:
        ValueError: a wrong rank, size, device or value.
        TypeError: a wrong type of tensor, or None for one.
        RuntimeError: another argument that is no tensor.

    Source: G. Cirrincione, arXiv 2604.08829; docs/operators.md.
    """
    tensors = (x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight, norm_bias)
    for name, tensor in zip(_WEIGHTS, tensors, strict=True):
        if tensor is None:  # PyTorch takes it for a tensor without a shape
            raise TypeError(f"{name} is None; it must be a tensor")
        _checks.operand(name, tensor)
    eps = _checks.finite("eps", eps)
    if eps < 0:
        raise ValueError(f"eps is {eps}; it must be at least 0")
    out: Tensor = _downsample(*tensors, stride, eps)
    return out
