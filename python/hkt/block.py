"""TransformerBlock: HKT attention and a feed-forward, each with its norm in front."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hkt import _checks, _options
from hkt.attention import HKTAttention


class TransformerBlock(nn.Module):
    """x + attention(norm(x)), then x + ffn(norm(x)), ffn = Linear(d_model, d_ff), GELU, Linear(d_ff, d_model), dropout.

    Args:
        d_model: width of input and output.
        num_heads: query heads.
        d_ff: width of the feed-forward.
        levels: resolutions of the attention.
        stride: between them.
        dropout: on the attention's output and on the feed-forward's.
        device: of the parameters.
        dtype: of the parameters.
        **attention: the other options of HKTAttention.

    Raises:
        ValueError: an option out of range.
        TypeError: an option of the wrong type, or an unknown one.

    Source: docs/model.md, "The classifier".
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        levels: int = 3,
        stride: int = 2,
        *,
        dropout: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.d_ff = _checks.integer("d_ff", d_ff, 1)
        self.dropout = _checks.probability("dropout", dropout)
        d_model = _options.limited("d_model", d_model)
        _checks.device("device", device)
        _checks.dtype("dtype", dtype)
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.attention_norm = nn.LayerNorm(d_model, **factory)
        self.attention = HKTAttention(d_model, num_heads, levels, stride, dropout=self.dropout, **attention, **factory)
        self.ffn_norm = nn.LayerNorm(d_model, **factory)
        self.ffn = nn.ModuleList([nn.Linear(d_model, self.d_ff, **factory), nn.Linear(self.d_ff, d_model, **factory)])

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x [B, T, d_model] -> the same shape; lengths as in HKTAttention.

        Padding must hold finite numbers here: the norms see it, and a gradient of 0 times NaN is NaN. What they are changes
        nothing.
        """
        attended: Tensor = x + self.attention(self.attention_norm(x), lengths)
        ffn: Tensor = self.ffn[1](F.gelu(self.ffn[0](self.ffn_norm(attended))))
        if self.dropout > 0 and self.training:
            ffn = F.dropout(ffn, self.dropout)
        return attended + ffn
