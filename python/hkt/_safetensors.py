"""The safetensors format, as hkt/io/safetensors.h reads and writes it, but for the checksum, which only C++ knows.

Eight bytes of header length, little-endian; JSON {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
..., "__metadata__": {text: text}}; the data.
"""

import ctypes
import json
import math
import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "F32": torch.float32,
    "I64": torch.int64,
    "F64": torch.float64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_METADATA = "__metadata__"


def read(path: pathlib.Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata. ValueError, naming the file, for everything that is not a whole, well-formed file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise ValueError(f"{path}: {len(content)} bytes do not hold its header; it is cut, damaged, or no safetensors file")
    try:
        header = json.loads(content[8 : 8 + length])
        metadata = {str(key): str(value) for key, value in header.pop(_METADATA, {}).items()}
        entries = [(name, e["dtype"], e["shape"], *e["data_offsets"]) for name, e in header.items()]
        entries.sort(key=lambda entry: entry[3:])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: the header is not that of a safetensors file; it is damaged") from error
    data = memoryview(content)[8 + length :]
    tensors, at = {}, 0
    for name, dtype, shape, begin, end in entries:
        tensors[name] = _tensor(f"{path}, tensor {name}", data, at, dtype, shape, begin, end)
        at = end
    if at != len(data):
        raise ValueError(f"{path}: {len(data) - at} bytes at the end belong to no tensor; the file is damaged")
    return tensors, metadata


def _tensor(where: str, data: memoryview, at: int, dtype: Any, shape: Any, begin: Any, end: Any) -> Tensor:
    if dtype not in _NAMES.values():
        raise ValueError(f"{where}: type {dtype!r} is not read here; known are {', '.join(_DTYPES)}")
    whole = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in [*shape, begin, end])
    wanted = math.prod(shape) * torch.empty(0, dtype=_DTYPES[dtype]).element_size() if whole else -1
    # In one piece from the first byte to the last: a hole would hide bytes that nobody checks.
    if not whole or begin != at or end - begin != wanted or end > len(data):
        raise ValueError(f"{where}: shape {shape} and data_offsets [{begin}, {end}] do not fit; the file is cut or damaged")
    if wanted == 0:
        return torch.empty(shape, dtype=_DTYPES[dtype])
    return torch.frombuffer(bytearray(data[begin:end]), dtype=_DTYPES[dtype]).reshape(shape)


def write(path: pathlib.Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Replaces the file atomically."""
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    rows, at = [], 0
    # Widest types first, so that every tensor is aligned to its own element.
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        if tensor.dtype not in _NAMES:
            raise TypeError(f"{name} is {tensor.dtype}; a file holds {', '.join(str(dtype) for dtype in _NAMES)}")
        row = tensor.detach().cpu().contiguous()
        size = row.numel() * row.element_size()
        header[name] = {"dtype": _NAMES[row.dtype], "shape": list(row.shape), "data_offsets": [at, at + size]}
        rows.append(ctypes.string_at(row.data_ptr(), size) if size else b"")
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    replace(path, b"".join([len(text).to_bytes(8, "little"), text, *rows]))


def replace(path: pathlib.Path, content: bytes) -> None:
    """Written beside it, synced and renamed: whoever reads meets the old file or the new one, never a piece."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
