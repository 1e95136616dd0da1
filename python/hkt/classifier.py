"""Classifier: what `hkt train` trains."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hkt import _checks
from hkt.block import TransformerBlock

EMBEDDING_DEVIATION = 0.02


class Classifier(nn.Module):
    """Embedding and learned positions (none with ``rotary``), pre-norm blocks, norm, mean over valid positions, head.

    Args:
        vocabulary: ids are 0 ... vocabulary - 1.
        classes: number of logits.
        seq_len: longest sequence that has learned positions; not needed with ``rotary``.
        d_model: width.
        num_heads: query heads.
        layers: number of blocks.
        d_ff: width of the feed-forward.
        levels: resolutions of the attention.
        stride: between them.
        rotary: rotary positions in place of learned ones.
        dropout: on the embeddings, the attention's output and the feed-forward's.
        device: of the parameters.
        dtype: of the parameters.
        **attention: the other options of HKTAttention.

    Attributes:
        run_config: the options of the run that it was loaded from (hkt.load), which hkt.save writes again; None for others.

    Raises:
        ValueError: an option out of range, or no ``seq_len`` without ``rotary``.
        TypeError: an option of the wrong type, or an unknown one.

    Source: docs/model.md, "The classifier".
    """

    run_config: dict[str, Any] | None

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        seq_len: int | None = None,
        *,
        d_model: int = 64,
        num_heads: int = 2,
        layers: int = 2,
        d_ff: int = 128,
        levels: int = 3,
        stride: int = 2,
        rotary: bool = False,
        dropout: float = 0.1,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.run_config = None
        self.vocabulary = _checks.integer("vocabulary", vocabulary, 1)
        self.dropout = _checks.probability("dropout", dropout)
        d_model = _checks.integer("d_model", d_model, 1)
        self.classes = _checks.integer("classes", classes, 1)
        layers = _checks.integer("layers", layers, 1)
        if seq_len is None and not _checks.flag("rotary", rotary):
            raise ValueError("seq_len is None; learned positions need the length of the longest sequence (or rotary=True)")
        self.seq_len = None if rotary or seq_len is None else _checks.integer("seq_len", seq_len, 1)
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embedding = nn.Embedding(self.vocabulary, d_model, **factory)
        nn.init.normal_(self.embedding.weight, 0, EMBEDDING_DEVIATION)
        self.position = None
        if self.seq_len is not None:
            self.position = nn.Embedding(self.seq_len, d_model, **factory)
            nn.init.normal_(self.position.weight, 0, EMBEDDING_DEVIATION)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                d_model, num_heads, d_ff, levels, stride, rotary=rotary, dropout=self.dropout, **attention, **factory
            )
            for _ in range(layers)
        )
        self.final_norm = nn.LayerNorm(d_model, **factory)
        self.head = nn.Linear(d_model, self.classes, **factory)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits of every class.

        Args:
            ids: int64 [B, T], T <= seq_len; in the padding they may be anything.
            lengths: int64 [B], 0 ... T: valid tokens of each sequence, padding on the right; None: all are.

        Returns:
            [B, classes]. A sequence of length 0 pools to 0.

        Raises:
            ValueError: a wrong shape, device, id or length.
            TypeError: a wrong type.
        """
        _checks.tensor("ids", ids, "a tensor [B, T] of type int64")
        if ids.dim() != 2:
            raise ValueError(f"ids has shape {list(ids.shape)}; it must be [B, T]")
        if ids.dtype != torch.int64:
            raise TypeError(f"ids is {ids.dtype}; it must be torch.int64")
        T = ids.size(1)
        if self.seq_len is not None and T > self.seq_len:
            raise ValueError(
                f"ids has T = {T} tokens; the model has learned positions for {self.seq_len}: cut the sequence, or use a "
                "larger seq_len (or rotary)"
            )
        valid = None
        if lengths is not None:
            _checks.lengths(lengths, ids)
            valid = torch.arange(T, device=ids.device).lt(lengths.unsqueeze(1))
            ids = torch.where(valid, ids, 0)
        self._check_ids(ids)
        x = self.embedding(ids)
        if self.position is not None:
            x = x + self.position(torch.arange(T, device=ids.device))
        if self.dropout > 0 and self.training:
            x = F.dropout(x, self.dropout)
        for block in self.blocks:
            x = block(x, lengths)
        x = self.final_norm(x)
        if valid is not None and lengths is not None:
            # A sequence without tokens is a sum of nothing over 1.
            count = lengths.clamp_min(1).unsqueeze(1).to(x.dtype)
            pooled = torch.where(valid.unsqueeze(2), x, 0).sum(1) / count
        else:
            pooled = x.mean(1) if T > 0 else x.sum(1)
        logits: Tensor = self.head(pooled)
        return logits

    def _check_ids(self, ids: Tensor) -> None:
        # Not while tracing, where values are not there to be read; the embedding then has its own check.
        if torch.compiler.is_compiling() or ids.is_meta or ids.numel() == 0:
            return
        least, most = (int(x) for x in torch.aminmax(ids))
        if least < 0 or most >= self.vocabulary:
            wrong = least if least < 0 else most
            raise ValueError(f"ids has the value {wrong}; it must be 0 ... {self.vocabulary - 1}, below the vocabulary")
