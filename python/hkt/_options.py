"""The options of the program with their types and limits, as hkt/base/config.h lists them; a test compares the two."""

import math
from typing import Any, NamedTuple

from hkt import _checks


class Option(NamedTuple):
    kind: type
    least: float = -math.inf
    most: float = math.inf
    above: bool = False  # least itself is not allowed
    choices: str = ""
    optional: bool = False  # may be null


# Those of the model are arguments of the modules, three under PyTorch's words: heads = num_heads, kv_heads = num_kv_heads,
# bidirectional = not causal.
DATA = {
    "task": Option(str, choices="listops|cifar10|imdb|text"),
    "data": Option(str),
    "preset": Option(str, choices="tiny|short|lra"),
    "seq_len": Option(int, 1, 1 << 20, optional=True),
    "data_seed": Option(int, 0),
    "rgb": Option(bool),
}
MODEL = {
    "model": Option(str, choices="hkt|hkt-fusion|mha|mha-conv|mha-wide"),
    "levels": Option(int, 1, 16, optional=True),
    "stride": Option(int, 2, 1024),
    "kernel_size": Option(int, 1, 1024),
    "hybrid": Option(bool, optional=True),
    "psd": Option(bool),
    "bidirectional": Option(bool),
    "rotary": Option(bool),
    "bias": Option(bool),
    "score_gain": Option(float, 0, above=True),
    "fusion": Option(str, choices="learned|uniform|frozen"),
    "gate_start": Option(float, -100, 100),
    "downsample": Option(str, choices="conv|pick"),
    "undecimated": Option(bool),
    "d_model": Option(int, 1, 1 << 16),
    "heads": Option(int, 1, 4096),
    "kv_heads": Option(int, 1, 4096, optional=True),
    "layers": Option(int, 1, 1024),
    "d_ff": Option(int, 1, 1 << 20),
    "dropout": Option(float, 0, 0.99),
}
TRAIN = {
    "batch": Option(int, 1, 1 << 16),
    "accumulate": Option(int, 1, 1 << 16),
    "steps": Option(int, 1),
    "lr": Option(float, 0, above=True),
    "fusion_lr_scale": Option(float, 0),
    "weight_decay": Option(float, 0),
    "warmup": Option(float, 0),
    "schedule": Option(str, choices="cosine|linear|rsqrt|constant"),
    "clip": Option(float, 0),
    "seed": Option(int, 0),
    "augment": Option(bool),
    "eval_every": Option(int, 0),
    "save_every": Option(int, 0),
    "log_every": Option(int, 0),
    "max_time": Option(float, 0),
    "patience": Option(int, 0),
    "keep_states": Option(int, 1, 10000),
    "ema": Option(float, 0, 0.999999),
    "overfit_batch": Option(bool),
    "tensorboard": Option(bool),
    "threads": Option(int, 0, 4096),
}
_ALL = {**DATA, **MODEL, **TRAIN}
_INT64 = (1 << 63) - 1


def check(name: str, value: Any) -> Any:
    """The value as a file holds it: a whole number where the program wants one, 1e4 being how JSON lets one write 10000."""
    option = _ALL[name]
    if value is None:
        if not option.optional:
            raise TypeError(f"{name} is null; only options that follow from others may be")
        return None
    if option.kind is bool:
        return _checks.flag(name, value)
    if option.kind is str:
        # The system would take a NUL for the end of a path.
        if not isinstance(value, str) or "\0" in value:
            raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be text without NUL characters")
        if option.choices and value not in option.choices.split("|"):
            raise ValueError(f"{name} is {value!r}; it must be one of {option.choices.replace('|', ', ')}")
        return value
    if option.kind is int:
        whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
        return _checks.integer(name, int(value) if whole else value, int(option.least), int(min(option.most, _INT64)))
    number = _checks.number(name, value)
    if not (math.isfinite(number) and option.least <= number <= option.most) or (option.above and number == option.least):
        wanted = f"{'above' if option.above else 'at least'} {option.least:g}"
        most = "finite" if option.most == math.inf else f"at most {option.most:g}"
        raise ValueError(f"{name} is {number:g}; it must be {wanted} and {most}")
    # A file holds numbers of Python's own, not what only can be made into one.
    return value if isinstance(value, (int, float)) else number


def limited(name: str, value: Any, option: str | None = None) -> int:
    """An argument of a module within the limits of the program's option of that name."""
    least, most = _ALL[option or name][1:3]
    return _checks.integer(name, value, int(least), int(most))
