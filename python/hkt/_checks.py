"""Checks of arguments: ValueError or TypeError, with the argument's name, what it got and what it needs."""

import math
import operator
from typing import Any

import torch
from torch import Tensor

# Floating types that the operators compute in.
TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
TYPES_TEXT = "torch.float32, torch.float64, torch.bfloat16 or torch.float16"


def integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{name} is {value}; it must be an integer")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be an integer") from None
    if number < least:
        raise ValueError(f"{name} is {number}; it must be at least {least}")
    if most is not None and number > most:
        raise ValueError(f"{name} is {number}; it must be at most {most}")
    return number


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be True or False")
    return value


def number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be a number")
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError, RuntimeError):  # an int of 400 digits, a complex number, a vector
        kind = "an integer" if isinstance(value, int) else f"a {type(value).__name__}"
        raise ValueError(f"{name} is {kind} that no float holds; it must be a finite number") from None


def finite(name: str, value: Any) -> float:
    result = value if type(value) is float else number(name, value)
    if not -math.inf < result < math.inf:
        raise ValueError(f"{name} is {result}; it must be finite")
    return result


def dtype(name: str, value: Any) -> torch.dtype | None:
    """Of parameters; None: PyTorch's default."""
    if value is not None and value not in TYPES:
        kind = value if isinstance(value, torch.dtype) else f"{value!r} of type {type(value).__name__}"
        raise TypeError(f"{name} is {kind}; it must be {TYPES_TEXT}")
    result: torch.dtype | None = value
    return result


def device(name: str, value: Any) -> None:
    if value is None:
        return
    try:
        torch.device(value)
    except (TypeError, RuntimeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} is {value!r}; it must be a device of PyTorch, as 'cpu' or 'cuda:0'") from error


def gain(name: str, value: Any) -> float:
    result = number(name, value)
    if not (math.isfinite(result) and result > 0):
        raise ValueError(f"{name} is {result}; it must be above 0 and finite")
    return result


def probability(name: str, value: Any) -> float:
    result = number(name, value)
    if not 0 <= result < 1:
        raise ValueError(f"{name} is {result}; it must be at least 0 and below 1")
    return result


def tensor(name: str, value: Any, needs: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is a {type(value).__name__}; it must be {needs}")
    if value.layout != torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
        raise ValueError(f"{name} is a {kind} tensor; it must be {needs}, and dense")


def operand(name: str, value: Any) -> None:
    """A tensor of no type of the operators, but a floating one: PyTorch knows no common type, and says so at length."""
    if isinstance(value, Tensor) and value.dtype not in TYPES and value.is_floating_point():
        raise TypeError(f"{name} is {value.dtype}; it must be {TYPES_TEXT}")


def lengths(value: Any, like: Tensor, name: str = "lengths") -> None:
    """int64 [B] on the device of ``like`` [B, ...]. The operator checks the values."""
    tensor(name, value, "a tensor of type int64 and shape [B]")
    if value.dtype != torch.int64:
        raise TypeError(f"{name} is {value.dtype}; it must be torch.int64")
    if value.dim() != 1 or value.size(0) != like.size(0):
        raise ValueError(f"{name} has shape {list(value.shape)}; it must be [B] = [{like.size(0)}]")
    if value.device != like.device:
        raise ValueError(f"{name} is on {value.device}; it must be on {like.device} like the input")
