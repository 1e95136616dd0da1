"""HKTAttention, one attention layer of the Hierarchical Kernel Transformer."""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from hkt import _checks, _library, _options  # noqa: F401  _library registers the operators
from hkt.convolution import Downsample, SeparableConv
from hkt.rotary import Rotary

GATE_START = 2.0  # gates start mostly open: sigmoid(2) = 0.88 of a level is attention

_multiscale_attention = torch.ops.hkt.multiscale_attention.default


def _autocast(device_type: str) -> bool:
    return torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)


def _check_mha(mha: Any) -> None:
    """That it computes what nn.MultiheadAttention does from parameters of its own, and nothing else is done at its call."""
    if not isinstance(mha, nn.MultiheadAttention):
        raise TypeError(f"mha is a {type(mha).__name__}; it must be an nn.MultiheadAttention")
    for name, part in (("", mha), ("out_proj.", mha.out_proj)):
        if parametrize.is_parametrized(part):
            names = ", ".join(f"{name}{parameter}" for parameter in part.parametrizations)  # type: ignore[union-attr]
            raise ValueError(f"mha has parametrizations, which would be lost, of {names}; remove them first")
    if type(mha) is not nn.MultiheadAttention:
        kind = f"{type(mha).__module__}.{type(mha).__qualname__}"
        raise TypeError(f"mha is a {kind}, a subclass that may compute something else; it must be no subclass")
    hooks = (mha._forward_pre_hooks, mha._forward_hooks, mha._backward_pre_hooks, mha._backward_hooks)
    if any(hooks) or "forward" in mha.__dict__:
        raise ValueError("mha has hooks or a forward of its own, which would be lost; remove them first, and hook in anew")


class HKTAttention(nn.Module):
    """Multi-scale self-attention: scores of several resolutions, mixed before one softmax.

    Level 0 is the input, level l its causal, strided convolution with T_l = ceil(T_{l-1} / stride) positions. Every level
    has its own queries and keys; the coarse scores are repeated to full resolution and mixed by learned weights a head.
    With gates (``hybrid``) a head can be a causal convolution of a level in place of attention. Output i depends on tokens
    j <= i only. ``levels=1, hybrid=False`` is standard multi-head attention.

    The layer is made of PyTorch's submodules (``query``, ``key``, ``value``, ``output``, ``downsample``, ``conv``); names,
    shapes and order of the parameters are those of the C++ layer and of the files (docs/model.md).

    Args:
        d_model: d, width of input and output, a multiple of ``num_heads``.
        num_heads: H, query heads, each d_model / num_heads wide.
        levels: L, number of resolutions.
        stride: s >= 2, between one level and the next.
        num_kv_heads: key and value heads, a divisor of ``num_heads``; None: as many.
        kernel_size: k, width of the causal convolutions.
        hybrid: gates between attention and convolution.
        psd: keys are the queries, so that the symmetric part of the score kernel is positive semidefinite; needs
            ``num_kv_heads = num_heads``.
        rotary: rotate queries and keys by their position; needs an even head width.
        score_gain: fixed factor on the mixed scores. sqrt(levels) gives the start the variance of one level.
        causal: row i sees tokens j <= i only. Without it the convolutions stay causal.
        bias: biases in the query, key and value projections; the output projection always has one.
        dropout: on the layer's output, never inside the softmax.
        device: of the parameters.
        dtype: of the parameters.

    Raises:
        ValueError: an option out of range (that of the program, docs/python.md), or options that do not go together.
        TypeError: an option of the wrong type.

    Source: G. Cirrincione, arXiv 2604.08829; what it leaves open is decided in docs/model.md.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        levels: int = 3,
        stride: int = 2,
        *,
        num_kv_heads: int | None = None,
        kernel_size: int = 3,
        hybrid: bool = True,
        psd: bool = False,
        rotary: bool = False,
        score_gain: float = 1.0,
        causal: bool = True,
        bias: bool = False,
        dropout: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d_model = _options.limited("d_model", d_model)
        self.num_heads = _options.limited("num_heads", num_heads, "heads")
        self.levels = _options.limited("levels", levels)
        self.stride = _options.limited("stride", stride)
        kv_heads = self.num_heads if num_kv_heads is None else num_kv_heads
        self.num_kv_heads = _options.limited("num_kv_heads", kv_heads, "kv_heads")
        self.kernel_size = _options.limited("kernel_size", kernel_size)
        self.hybrid = _checks.flag("hybrid", hybrid)
        self.psd = _checks.flag("psd", psd)
        self.rotary = _checks.flag("rotary", rotary)
        self.score_gain = _checks.gain("score_gain", score_gain)
        self.causal = _checks.flag("causal", causal)
        self.bias = _checks.flag("bias", bias)
        self.dropout = _checks.probability("dropout", dropout)
        _checks.device("device", device)
        _checks.dtype("dtype", dtype)
        self._check_together()
        d, d_kv = self.d_model, self.head_width * self.num_kv_heads

        def linear(out: int, bias: bool) -> nn.Linear:
            return nn.Linear(d, out, bias=bias, device=device, dtype=dtype)

        logits = (self.num_heads, self.levels)
        self.level_logits = nn.Parameter(torch.empty(logits, device=device, dtype=dtype))
        self.gate_logits = nn.Parameter(torch.empty(logits, device=device, dtype=dtype)) if self.hybrid else None
        self.query = nn.ModuleList(linear(d, self.bias) for _ in range(self.levels))
        self.key = None if self.psd else nn.ModuleList(linear(d_kv, self.bias) for _ in range(self.levels))
        self.value = linear(d_kv, self.bias)
        self.output = linear(d, True)
        # By name, as the first is that of level 1.
        self.downsample = nn.ModuleDict(
            {str(l): Downsample(d, self.kernel_size, self.stride, device, dtype) for l in range(1, self.levels)}
        )
        self.conv = nn.ModuleList(
            SeparableConv(d, self.kernel_size, device, dtype) for _ in range(self.levels if self.hybrid else 0)
        )
        self._rotary = [Rotary(float(self.stride) ** l) for l in range(self.levels)] if self.rotary else []
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The logits' start: all levels alike, gates at sigmoid(2). The submodules have their own."""
        nn.init.zeros_(self.level_logits)
        if self.gate_logits is not None:
            nn.init.constant_(self.gate_logits, GATE_START)

    @classmethod
    def from_mha(
        cls, mha: nn.MultiheadAttention, levels: int = 3, stride: int = 2, *, kernel_size: int = 3, causal: bool = True
    ) -> "HKTAttention":
        """A layer with the weights of PyTorch's: its outputs are the same to rounding, and every level can learn.

        The level-0 query projection is the old one times ``levels``, since every level starts with the weight 1/levels; the
        coarse query projections are 0; there are no gates. With biases as ``mha`` has them (an output bias of 0 where it has
        none), on its device, of its type and in its mode. What is copied from a frozen parameter (requires_grad=False) is
        frozen.

        Args:
            mha: self-attention; unchanged.
            levels: resolutions.
            stride: between them.
            kernel_size: width of the causal convolutions.
            causal: the mask that ``mha`` is called with.

        Raises:
            TypeError: no nn.MultiheadAttention, or a subclass, which may compute something else.
            ValueError: key or value widths of their own, ``add_bias_kv`` or ``add_zero_attn``; parametrizations, hooks or a
                ``forward`` of the instance, which would be lost.

        Its dropout acts on attention weights; HKT's on the output: a warning where it is above 0.
        """
        _check_mha(mha)
        if not mha._qkv_same_embed_dim:
            raise ValueError(f"mha has kdim = {mha.kdim} and vdim = {mha.vdim}; they must be embed_dim = {mha.embed_dim}")
        if mha.bias_k is not None or mha.add_zero_attn:
            raise ValueError("mha has add_bias_kv or add_zero_attn; HKT has neither")
        if mha.dropout > 0:
            warnings.warn(f"dropout {mha.dropout} moves from the attention weights to the layer's output", stacklevel=2)
        weight, bias = mha.in_proj_weight, mha.in_proj_bias
        layer = cls(
            mha.embed_dim,
            mha.num_heads,
            levels,
            stride,
            kernel_size=kernel_size,
            hybrid=False,
            causal=causal,
            bias=bias is not None,
            dropout=mha.dropout,
            device=weight.device,
            dtype=weight.dtype,
        )
        key: Any = layer.key
        with torch.no_grad():
            for rows, name in [(weight, "weight"), (bias, "bias")]:
                if rows is None:
                    continue
                for projection, old in zip((layer.query[0], key[0], layer.value), rows.chunk(3), strict=True):
                    getattr(projection, name).copy_(old).requires_grad_(rows.requires_grad)
                getattr(layer.query[0], name).mul_(levels)
                for coarse in layer.query[1:]:
                    getattr(coarse, name).zero_()
            layer.output.weight.copy_(mha.out_proj.weight).requires_grad_(mha.out_proj.weight.requires_grad)
            if mha.out_proj.bias is None:
                layer.output.bias.zero_()
            else:
                layer.output.bias.copy_(mha.out_proj.bias).requires_grad_(mha.out_proj.bias.requires_grad)
        return layer.train(mha.training)

    @property
    def head_width(self) -> int:
        """D = d_model / num_heads."""
        return self.d_model // self.num_heads

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """One layer of attention.

        Args:
            x: [B, T, d_model], of the type and on the device of the weights (any floating type under autocast).
            lengths: int64 [B], 0 ... T, on x's device: valid tokens of each sequence, padding on the right; None: all are.
                What stands in the padding, NaN included, changes no bit of the rest, nor of a gradient.

        Returns:
            [B, T, d_model]; 0 in the padding.

        Raises:
            ValueError: a wrong shape, device, or length.
            TypeError: a wrong type.
        """
        return self.attend(x, lengths, self.causal)

    def attend(self, x: Tensor, lengths: Tensor | None, causal: bool) -> Tensor:
        """``forward`` with the causal mask as a matter of the call."""
        x, valid = self._valid(x, lengths)
        queries, keys, branches = self._levels(x)
        value = self._heads("value", self.value(x), x, self.num_kv_heads).transpose(1, 2)
        mixed = self._mix(queries, keys, value, branches, causal, lengths)
        out: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        self._check_shape("output", out, x.size(1), x)
        if self.dropout > 0 and self.training:
            out = F.dropout(out, self.dropout)
        return out if valid is None else torch.where(valid, out, 0)

    def weights(self, x: Tensor, lengths: Tensor | None = None, *, causal: bool | None = None) -> Tensor:
        """The attention weights [B, H, T, T] of ``forward``: what the softmax over the mixed scores gives.

        For looking at: T x T memory, and T / D times the work of the layer's attention, as the operator is asked what it
        does to the rows of a unit matrix. Rows in the padding are 0. Differentiable.

        Args:
            x: as in ``forward``.
            lengths: as in ``forward``.
            causal: the mask; None: the layer's.

        Raises:
            ValueError: gates (``hybrid``), as a head is then more than weights; else as ``forward``.
            TypeError: as ``forward``.
        """
        if self.hybrid:
            raise ValueError("weights of a layer with hybrid=True: its heads mix attention with convolutions")
        causal = self.causal if causal is None else _checks.flag("causal", causal)
        x, _ = self._valid(x, lengths)
        queries, keys, _ = self._levels(x)
        T = x.size(1)
        unit = torch.eye(T, dtype=queries[0].dtype, device=x.device).expand(x.size(0), self.num_kv_heads, T, T)
        return self._mix(queries, keys, unit, [], causal, lengths)

    def _valid(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """x, 0 in the padding, and which rows are valid, [B, T, 1]."""
        self._check_input(x, lengths)
        if lengths is None:
            return x, None
        # A selection: NaN in the padding must meet no arithmetic, as 0 times NaN is NaN in every weight's gradient.
        valid = torch.arange(x.size(1), device=x.device).lt(lengths.unsqueeze(1)).unsqueeze(2)
        return torch.where(valid, x, 0), valid

    def _levels(self, x: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Queries, keys and, with gates, branches of every level, [B, heads, T_l, D]."""
        queries, keys, branches = [], [], []
        level = x
        for l in range(self.levels):
            if l > 0:
                finer, level = level, self.downsample[str(l)](level)
                self._check_shape(f"downsample.{l}", level, -(-finer.size(1) // self.stride), finer)
                self._warn_if_single(l, level)
            query = self._heads(f"query.{l}", self.query[l](level), level, self.num_heads)
            key = query
            if self.key is not None:
                key = self._heads(f"key.{l}", self.key[l](level), level, self.num_kv_heads)
            if self._rotary:
                key, query = self._rotary[l](key), self._rotary[l](query)
            queries.append(query.transpose(1, 2))
            keys.append(key.transpose(1, 2))
            if self.hybrid:
                branch = self._heads(f"conv.{l}", self.conv[l](level), level, self.num_heads)
                branches.append(branch.transpose(1, 2))
        return queries, keys, branches

    def _mix(
        self,
        queries: list[Tensor],
        keys: list[Tensor],
        value: Tensor,
        branches: list[Tensor],
        causal: bool,
        lengths: Tensor | None,
    ) -> Tensor:
        gain, gates = self.score_gain, self.gate_logits
        mixed: Tensor = _multiscale_attention(
            queries, keys, value, self.level_logits, gates, branches, self.stride, None, gain, causal, lengths
        )
        return mixed

    def _heads(self, name: str, rows: Tensor, level: Tensor, heads: int) -> Tensor:
        """[B, T_l, heads * D] seen as [B, T_l, heads, D]; ``name`` is the submodule that made it, maybe a user's own."""
        B, Tl, _ = level.shape
        if rows.shape != (B, Tl, heads * self.head_width):
            raise ValueError(
                f"{name} gives {list(rows.shape)}; it must give [B, T, width] with width = {heads * self.head_width} for the "
                f"{list(level.shape)} that it is called with"
            )
        return rows.view(B, Tl, heads, self.head_width)

    def _check_shape(self, name: str, out: Tensor, T: int, x: Tensor) -> None:
        """Of what a submodule, maybe a user's own, makes of x. While tracing lengths are symbols, and the width is enough."""
        length = out.size(1) if torch.compiler.is_compiling() and out.dim() == 3 else T
        if out.shape != (x.size(0), length, self.d_model):
            raise ValueError(
                f"{name} gives {list(out.shape)}; it must give {[x.size(0), T, self.d_model]} for an input of {list(x.shape)}"
            )

    def _check_together(self) -> None:
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model is {self.d_model}; it must be a multiple of num_heads = {self.num_heads}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads is {self.num_kv_heads}; it must divide num_heads = {self.num_heads}")
        if self.psd and self.num_kv_heads != self.num_heads:
            raise ValueError(
                f"psd needs num_kv_heads = num_heads; num_kv_heads is {self.num_kv_heads}, num_heads is {self.num_heads}"
            )
        if self.rotary and self.head_width % 2:
            raise ValueError(f"rotary needs an even head width; d_model / num_heads is {self.head_width}")
        if self.levels > 1 and self.stride > self.kernel_size:
            warnings.warn(
                f"stride {self.stride} is above kernel_size {self.kernel_size}: some tokens never reach the coarse levels; "
                "use a kernel_size of at least the stride",
                stacklevel=3,
            )

    def _check_input(self, x: Tensor, lengths: Tensor | None) -> None:
        _checks.tensor("x", x, f"a tensor [B, T, d_model = {self.d_model}]")
        if x.dim() != 3 or x.size(2) != self.d_model:
            raise ValueError(f"x has shape {list(x.shape)}; it must be [B, T, d_model = {self.d_model}]")
        like = self.level_logits
        if x.device != like.device:
            raise ValueError(f"x is on {x.device}; it must be on {like.device} like the layer's weights")
        if x.dtype != like.dtype and not (x.is_floating_point() and _autocast(x.device.type)):
            raise TypeError(f"x is {x.dtype}; it must be {like.dtype} like the layer's weights")
        if lengths is not None:
            _checks.lengths(lengths, x)

    def _warn_if_single(self, l: int, level: Tensor) -> None:
        if not torch.compiler.is_compiling() and level.size(1) == 1:
            warnings.warn(
                f"level {l} has a single position for sequences of T <= {self.stride}^{l} tokens: it only flattens the "
                "attention there; use fewer levels or longer sequences",
                stacklevel=4,
            )

    def extra_repr(self) -> str:
        names = "levels stride num_kv_heads kernel_size hybrid psd rotary score_gain causal dropout".split()
        return f"{self.d_model}, {self.num_heads}, " + ", ".join(f"{name}={getattr(self, name)}" for name in names)
