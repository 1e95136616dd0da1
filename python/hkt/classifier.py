"""Classifier: what `hkt train` trains."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hkt import _checks, _options
from hkt.block import TransformerBlock

EMBEDDING_DEVIATION = 0.02
CHANNELS = 3


class Classifier(nn.Module):
    """Embedding and learned positions (none with ``rotary``), pre-norm blocks, norm, mean over valid positions, head.

    Args:
        vocabulary: ids are 0 ... vocabulary - 1; None with ``rgb``.
        classes: number of logits.
        seq_len: longest sequence that has learned positions; not needed with ``rotary``.
        d_model: width.
        num_heads: query heads.
        layers: number of blocks.
        d_ff: width of the feed-forward.
        levels: resolutions of the attention.
        stride: between them.
        rotary: rotary positions in place of learned ones.
        rgb: three channels a step, through a linear map, in place of ids.
        dropout: on the embeddings, the attention's output and the feed-forward's.
        device: of the parameters.
        dtype: of the parameters.
        **attention: the other options of HKTAttention.

    Attributes:
        run_config: the options of the run that it was loaded from (hkt.load), which hkt.save writes again; None for others.

    Raises:
        ValueError: an option out of range, no ``seq_len`` without ``rotary``, or a vocabulary with ``rgb``.
        TypeError: an option of the wrong type, or an unknown one.

    Source: docs/model.md, "The classifier".
    """

    run_config: dict[str, Any] | None
    run_classes: str | None  # names of the classes as the run's file has them, of labelled text

    def __init__(
        self,
        vocabulary: int | None,
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
        rgb: bool = False,
        dropout: float = 0.1,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.run_config = None
        self.run_classes = None
        self.rgb = _checks.flag("rgb", rgb)
        if self.rgb and vocabulary is not None:
            raise ValueError(f"vocabulary is {vocabulary!r}; with rgb there is none, it must be None")
        self.vocabulary = None if self.rgb else _checks.integer("vocabulary", vocabulary, 1)
        self.dropout = _checks.probability("dropout", dropout)
        d_model = _options.limited("d_model", d_model)
        self.classes = _checks.integer("classes", classes, 1)
        layers = _options.limited("layers", layers)
        if seq_len is None and not _checks.flag("rotary", rotary):
            raise ValueError("seq_len is None; learned positions need the length of the longest sequence (or rotary=True)")
        self.seq_len = None if rotary or seq_len is None else _options.limited("seq_len", seq_len)
        _checks.device("device", device)
        _checks.dtype("dtype", dtype)
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embedding: nn.Module
        if self.vocabulary is None:
            self.embedding = nn.Linear(CHANNELS, d_model, **factory)
        else:
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
            ids: int64 [B, T], T <= seq_len. With ``rgb`` [B, T, 3]: int64 or uint8, 0 ... 255, which become v / 127.5 - 1, or
                floating numbers, which are taken as they are. In the padding they may be anything.
            lengths: int64 [B], 0 ... T: valid tokens of each sequence, padding on the right; None: all are.

        Returns:
            [B, classes]. A sequence of length 0 pools to 0.

        Raises:
            ValueError: a wrong shape, device, id or length.
            TypeError: a wrong type.
        """
        self._check_shape(ids)
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
            ids = torch.where(valid.unsqueeze(2) if self.rgb else valid, ids, 0)
        self._check_ids(ids)
        x = self.embedding(self._channels(ids) if self.rgb else ids)
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

    def _channels(self, values: Tensor) -> Tensor:
        scaled = values.to(self.final_norm.weight.dtype)
        return scaled if values.is_floating_point() else scaled / 127.5 - 1

    def _check_shape(self, ids: Tensor) -> None:
        shape, types = ("[B, T, 3]", "torch.int64, torch.uint8 or floating") if self.rgb else ("[B, T]", "torch.int64")
        _checks.tensor("ids", ids, f"a tensor {shape} of type {types}")
        if ids.dim() != (3 if self.rgb else 2) or (self.rgb and ids.size(2) != CHANNELS):
            raise ValueError(f"ids has shape {list(ids.shape)}; it must be {shape}")
        if ids.dtype != torch.int64 and not (self.rgb and (ids.dtype == torch.uint8 or ids.is_floating_point())):
            raise TypeError(f"ids is {ids.dtype}; it must be {types}")

    def _check_ids(self, ids: Tensor) -> None:
        # Not while tracing, where values are not there to be read; the embedding then has its own check.
        if torch.compiler.is_compiling() or ids.is_meta or ids.numel() == 0 or ids.dtype != torch.int64:
            return
        limit = 256 if self.vocabulary is None else self.vocabulary
        least, most = (int(x) for x in torch.aminmax(ids))
        if least < 0 or most >= limit:
            wrong = least if least < 0 else most
            why = "the bytes of a channel" if self.rgb else "below the vocabulary"
            raise ValueError(f"ids has the value {wrong}; it must be 0 ... {limit - 1}, {why}")
