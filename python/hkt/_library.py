"""Finds libhkt_ops.so, refuses it beside another PyTorch than it was built for, and loads it (torch.ops.hkt.*)."""

import json
import os
import pathlib
import re
from typing import Any

import torch

ENVIRONMENT = "HKT_LIBRARY"


def _path() -> pathlib.Path:
    named = os.environ.get(ENVIRONMENT)
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent / "libhkt_ops.so"
    if path.is_file():
        return path
    mend = "name the file that 'make build' leaves" if named else f"run 'pip install .' in hkt's folder, or set {ENVIRONMENT}"
    raise ImportError(f"hkt: there is no library at {path}{f', which {ENVIRONMENT} names' if named else ''}; {mend}")


def _built_with(path: pathlib.Path) -> dict[str, str]:
    """The file beside the library: readable where the library itself would not load."""
    beside = path.with_suffix(".json")
    try:
        built: dict[str, str] = json.loads(beside.read_text())
        _minor(built["torch"]), built["hkt"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportError(f"hkt: {beside}, which a build leaves beside the library, cannot be read; build again") from error
    return built


def _minor(version: str) -> str:
    match = re.match(r"\d+\.\d+", version)
    if match is None:
        raise ValueError(version)
    return match[0]


def _load() -> tuple[pathlib.Path, str]:
    path = _path()
    built = _built_with(path)
    wanted = _minor(built["torch"])
    if _minor(torch.__version__) != wanted:
        raise ImportError(
            f"hkt was built with PyTorch {built['torch']} and this is PyTorch {torch.__version__}; the library works with "
            f"the minor version it was built with. Run 'pip install --force-reinstall .' in hkt's folder to build it for "
            f"this one, or 'pip install \"torch=={wanted}.*\"'"
        )
    # A second copy of the library would end the process: PyTorch lets nobody register the same operators twice.
    if not hasattr(torch.ops.hkt, "describe"):
        register: Any = torch.ops.load_library
        register(str(path.resolve()))
    return path, built["hkt"]


path, version = _load()


def info() -> dict[str, Any]:
    """What a bug report needs.

    Returns:
        ``version`` and ``commit`` of the operators, their ``compiler``, ``torch_built_with`` and ``torch_loaded``, the SIMD
        ``target`` that the CPU kernels run on with ``targets_usable`` and ``targets_compiled``, PyTorch's ``threads``, and
        the file ``library``.

    Raises:
        RuntimeError: the environment variable HKT_TARGET names no target that this processor runs.
    """
    described: dict[str, Any] = dict(torch.ops.hkt.describe())
    for key in ("targets_usable", "targets_compiled"):
        described[key] = described[key].split()
    return {**described, "torch_loaded": torch.__version__, "threads": torch.get_num_threads(), "library": str(path)}
