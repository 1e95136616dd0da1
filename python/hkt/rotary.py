"""Rotary positions of one level."""

import torch
from torch import Tensor

BASE = 10000.0


def _complex(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype == torch.float64 else torch.complex64


class Rotary:
    """The pair (x[2i], x[2i+1]) of position tau turns by tau * step * BASE^(-2i/D); step = stride^l at level l.

    The table of angles is kept between calls and grows. It is no parameter and goes into no state dict, copy or pickle.
    """

    def __init__(self, step: float) -> None:
        self.step = step
        self._turns: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"step": self.step, "_turns": None}

    def __call__(self, x: Tensor) -> Tensor:
        """x [B, T, H, D], D even -> the same shape and type; 16-bit types are turned in float32."""
        real = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        pairs = torch.view_as_complex(real.view(*real.shape[:3], real.size(3) // 2, 2))
        turned = torch.view_as_real(pairs * self._table(real)).flatten(3)
        return turned.to(x.dtype)

    def _table(self, real: Tensor) -> Tensor:
        """Complex [T, 1, D/2]."""
        T, D = real.size(1), real.size(3)
        if torch.compiler.is_compiling():
            return self._compute(T, D, real)
        turns = self._turns  # read once: another thread may replace it
        fits = turns is not None and turns.size(0) >= T and turns.size(2) == D // 2
        if turns is None or not fits or turns.dtype != _complex(real.dtype) or turns.device != real.device:
            # It outlives this call: a table made in inference mode could not be saved for a later backward pass.
            with torch.inference_mode(False), torch.no_grad():
                turns = self._compute(T, D, real)
            if type(turns) is Tensor:  # and not one that only stands in for a tensor, while somebody traces
                self._turns = turns
        return turns[:T]

    def _compute(self, T: int, D: int, real: Tensor) -> Tensor:
        # Angles in double: in float the position 1e5 would be off by 0.4 % of a turn.
        rates = torch.pow(BASE, torch.arange(0, D, 2, dtype=torch.float64) * (-1.0 / D))
        angles = torch.outer(torch.arange(T, dtype=torch.float64) * self.step, rates).unsqueeze(1)
        return torch.polar(torch.ones_like(angles), angles).to(device=real.device, dtype=_complex(real.dtype))
