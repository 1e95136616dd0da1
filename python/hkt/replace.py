"""HKT in place of nn.MultiheadAttention, with its weights and its call."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from hkt import _checks
from hkt.attention import HKTAttention

Model = TypeVar("Model", bound=nn.Module)


class MultiheadAttention(nn.Module):
    """HKTAttention under the call of nn.MultiheadAttention, for self-attention.

    Its outputs are at first those of the module that it replaces, to rounding; in the padding they are 0. The causal mask is
    a matter of the call, as there.

    Args:
        mha: the module whose weights and attributes it takes; unchanged.
        levels: resolutions.
        stride: between them.
        kernel_size: width of the causal convolutions.

    Raises:
        ValueError: as HKTAttention.from_mha.

    Source: docs/python.md, "In place of nn.MultiheadAttention".
    """

    # For those who look: nn.TransformerEncoderLayer takes its own fused path where there is an in_proj_bias.
    in_proj_weight = in_proj_bias = bias_k = bias_v = None
    add_zero_attn = False
    _qkv_same_embed_dim = True

    def __init__(self, mha: nn.MultiheadAttention, levels: int = 3, stride: int = 2, *, kernel_size: int = 3) -> None:
        super().__init__()
        self.attention = HKTAttention.from_mha(mha, levels, stride, kernel_size=kernel_size, causal=False)
        self.embed_dim = self.kdim = self.vdim = mha.embed_dim
        self.num_heads, self.head_dim = mha.num_heads, mha.head_dim
        self.dropout, self.batch_first = mha.dropout, mha.batch_first
        self.train(mha.training)

    @property
    def out_proj(self) -> nn.Module:
        """The output projection, for those who read it; ``attention.output`` is where another can be put."""
        output: nn.Module = self.attention.output
        return output

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "out_proj":  # nn.Module would take a module, and nobody would call it
            raise AttributeError("out_proj can only be read; set attention.output")
        super().__setattr__(name, value)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool | None = None,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Self-attention.

        Args:
            query: [B, T, d] with batch_first, else [T, B, d]; or [T, d].
            key: the same tensor.
            value: the same tensor.
            key_padding_mask: [B, T] ([T] without a batch), true or minus infinity in the padding, which is on the right.
            need_weights: True returns the attention weights, at the cost of T x T memory and T / head_dim times the work of
                the layer's attention; False returns None. Not given: None, too, and a warning; nn.MultiheadAttention would
                compute them.
            attn_mask: causal (true or minus infinity above the diagonal) or without effect; [T, T], or [B * H, T, T].
            average_attn_weights: the mean of the weights over heads.
            is_causal: says that attn_mask is causal; it is then not looked at.

        Returns:
            The output in query's shape; and None, or the weights [B, T, T], [B, H, T, T] where they are not averaged (without
            B for an input without a batch), 0 in rows of the padding, and never dropped out.

        Raises:
            ValueError: cross-attention, padding that is not on the right, another mask, or a wrong shape.
            TypeError: a mask of another type.
        """
        if key is not query or value is not query:
            raise ValueError("key and value must be the tensor query: HKT is self-attention, it has no cross-attention")
        _checks.tensor("query", query, "a tensor")
        if query.dim() not in (2, 3):
            raise ValueError(f"query has shape {list(query.shape)}; it must have 2 or 3 dimensions")
        if need_weights is None and not torch.compiler.is_compiling():
            warnings.warn(
                "need_weights is not given: HKT returns None in the weights' place, and keeps nothing T x T. Give "
                "need_weights=True to have the weights, False to say that nobody wants them",
                stacklevel=2,
            )
        if need_weights is not None:
            _checks.flag("need_weights", need_weights)
        _checks.flag("average_attn_weights", average_attn_weights)
        _checks.flag("is_causal", is_causal)
        batched = query.dim() == 3
        x = query.unsqueeze(0) if not batched else query if self.batch_first else query.transpose(0, 1)
        lengths = None
        if key_padding_mask is not None:
            _checks.tensor("key_padding_mask", key_padding_mask, "a tensor [B, T], or [T] without a batch")
            lengths = _lengths(key_padding_mask if batched else key_padding_mask.unsqueeze(0), x)
        if attn_mask is not None:
            _check_mask(attn_mask, x.size(0) * self.num_heads, x.size(1))
        causal = is_causal or (attn_mask is not None and _is_causal(attn_mask, x.size(1)))
        out = self.attention.attend(x, lengths, causal)
        out = out.squeeze(0) if not batched else out if self.batch_first else out.transpose(0, 1)
        if not need_weights:
            return out, None
        weights = self.attention.weights(x, lengths, causal=causal)
        weights = weights.mean(1) if average_attn_weights else weights
        return out, weights if batched else weights.squeeze(0)


def _masked(name: str, mask: Tensor) -> Tensor:
    """Where a mask hides: true, or minus infinity."""
    _checks.tensor(name, mask, "a tensor")
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise TypeError(f"{name} is {mask.dtype}; it must be torch.bool or a floating type")
    hidden = mask == -torch.inf
    _require(((mask == 0) | hidden).all(), f"{name} adds to the scores; it must be 0 or minus infinity, HKT has no other bias")
    return hidden


def _lengths(mask: Tensor, x: Tensor) -> Tensor:
    if mask.shape != x.shape[:2]:
        raise ValueError(f"key_padding_mask has shape {list(mask.shape)}; it must be [B, T] = {list(x.shape[:2])}")
    valid = ~_masked("key_padding_mask", mask)
    lengths = valid.sum(1)
    right = (torch.arange(x.size(1), device=x.device).lt(lengths.unsqueeze(1)) == valid).all()
    # The grid of the coarse levels begins at the first token.
    _require(right, "key_padding_mask has padding before a valid token; it must be on the right only")
    return lengths


def _check_mask(mask: Tensor, rows: int, T: int) -> None:
    _checks.tensor("attn_mask", mask, "a tensor [T, T] or [B * H, T, T]")
    if mask.shape != (T, T) and mask.shape != (rows, T, T):
        wanted = f"[T, T] or [B * H, T, T] with T = {T} and B * H = {rows}"
        raise ValueError(f"attn_mask has shape {list(mask.shape)}; it must be {wanted}")


def _is_causal(mask: Tensor, T: int) -> bool:
    hidden = _masked("attn_mask", mask)
    if not hidden.any():
        return False
    above = torch.ones(T, T, dtype=torch.bool, device=mask.device).triu(1)
    if not (hidden == above).all():
        raise ValueError("attn_mask is neither causal nor without effect; HKT has no other masks")
    return True


def _require(condition: Tensor, message: str) -> None:
    if torch.compiler.is_compiling():
        torch._assert_async(condition, message)
    elif not condition:
        raise ValueError(message)


def _shared(model: nn.Module, replaced: Iterable[nn.Module]) -> list[str]:
    """The names of each parameter that belongs to a replaced module and to another one as well."""
    theirs = {parameter for module in replaced for parameter in module.parameters()}
    names: dict[nn.Parameter, list[str]] = {}
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            if parameter in theirs:
                names.setdefault(parameter, []).append(f"{path}.{name}" if path else name)
    return [" = ".join(group) for group in names.values() if len(group) > 1]


def replace_attention(
    model: Model,
    *,
    levels: int = 3,
    stride: int = 2,
    kernel_size: int = 3,
    only: Callable[[str], bool] | None = None,
) -> Model:
    """Puts HKT in the place of every self-attention of a model; the outputs are the old ones to rounding at first.

    Replaced is every nn.MultiheadAttention (so those of nn.TransformerEncoderLayer), but for the cross-attention of
    nn.TransformerDecoderLayer (``multihead_attn``) and those with key or value widths of their own. One that stands in several
    places is replaced by one. Subclasses may compute something else and stay, with a warning that names them. Where one
    parameter is that of several modules, the new ones have copies of their own, with a warning.

    Args:
        model: changed in place.
        levels: resolutions.
        stride: between them.
        kernel_size: width of the causal convolutions.
        only: of the module's name in the model ("encoder.layers.0.self_attn"); False leaves it as it is.

    Returns:
        The model, or what takes its place where it is an nn.MultiheadAttention itself.

    Raises:
        ValueError: there is nothing to replace, or as HKTAttention.from_mha, with the module's name.
        TypeError: ``model`` is no module, or ``only`` no function.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; it must be an nn.Module")
    if only is not None and not callable(only):
        raise TypeError(f"only is a {type(only).__name__}; it must be a function of a module's name, or None")
    replaced: dict[nn.Module, nn.Module] = {}
    subclasses: dict[nn.Module, str] = {}

    def replacement(name: str, module: nn.Module) -> nn.Module | None:
        if not isinstance(module, nn.MultiheadAttention) or not module._qkv_same_embed_dim:
            return None
        if only is not None and not only(name):
            return None
        own = parametrize.type_before_parametrizations(module)
        if own is not nn.MultiheadAttention:
            subclasses.setdefault(module, f"{name or 'the model'} ({own.__module__}.{own.__qualname__})")
            return None
        if module not in replaced:
            try:
                replaced[module] = MultiheadAttention(module, levels, stride, kernel_size=kernel_size)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name or 'the model'}: {error}") from error
        return replaced[module]

    whole = replacement("", model)
    # All are made before any is put in place: an error leaves the model as it was.
    places: list[tuple[nn.Module, str, nn.Module]] = []
    for path, parent in model.named_modules(remove_duplicate=False):
        for name, child in parent._modules.items():  # named_children gives a shared one once
            if child is None:
                continue
            if name == "multihead_attn" and isinstance(parent, nn.TransformerDecoderLayer):
                continue
            new = replacement(f"{path}.{name}" if path else name, child)
            if new is not None:
                places.append((parent, name, new))
    left = f"subclasses of nn.MultiheadAttention may compute something else and stay: {', '.join(subclasses.values())}"
    if not replaced:
        besides = f"; {left}" if subclasses else ""
        raise ValueError(f"model has no nn.MultiheadAttention that is self-attention (and that only names){besides}")
    if subclasses:
        warnings.warn(left, stacklevel=2)
    shared = _shared(model, replaced)
    if shared:
        names = "; ".join(shared)
        warnings.warn(f"parameters of several modules, of which HKT's are copies from here on: {names}", stacklevel=2)
    for parent, name, new in places:
        setattr(parent, name, new)
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False  # ragged tensors are for PyTorch's own fused layers
    return whole if whole is not None else model  # type: ignore[return-value]
