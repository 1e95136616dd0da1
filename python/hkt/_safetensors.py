"""The safetensors format, as hkt/io/safetensors.h reads and writes it.

Eight bytes of header length, little-endian; JSON {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
..., "__metadata__": {text: text}}; the data. Files of ours carry a checksum of names, types, shapes, data and metadata.
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

from hkt import _library  # noqa: F401  registers hkt::checksum

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
_CHECKSUM = "hkt_checksum"
VERSION = "hkt_version"


def read(path: pathlib.Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata. ValueError, naming the file, for everything that is not a whole, well-formed file.

    A checksum of ours must agree; a file of another program, without hkt_version, may have none.
    """
    if not path.is_file():  # a pipe would be waited for, a device never ends
        raise ValueError(f"{path}: not a plain file; name a safetensors file")
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise ValueError(f"{path}: {len(content)} bytes do not hold its header; it is cut, damaged, or no safetensors file")
    try:
        header = json.loads(content[8 : 8 + length])
        metadata = dict(header.pop(_METADATA, {}))
        if not all(isinstance(value, str) for value in metadata.values()):
            raise TypeError
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
    checksum = metadata.get(_CHECKSUM, "")
    if not checksum and VERSION in metadata:  # ours always have one: its key itself is damaged
        raise ValueError(
            f"{path}: was written by hkt and has no checksum, so the file is damaged; use a copy of it, or train again"
        )
    if checksum not in ("", _checksum(tensors, metadata)):
        raise ValueError(f"{path}: the checksum does not agree, so the file is damaged; use a copy of it, or train again")
    return tensors, metadata


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """As ChecksumOf in hkt/io/safetensors.cc: lengths go in beside texts, so that where a text ends counts, too."""
    pieces: list[Tensor] = []

    def add(*texts: str) -> None:
        encoded = [text.encode() for text in texts]
        together = b"".join(b"%d:%b" % (len(text), text) for text in encoded)
        pieces.append(torch.frombuffer(bytearray(together), dtype=torch.uint8))

    for key in sorted(set(metadata) - {_CHECKSUM}):
        add(key, metadata[key])
    for name in sorted(tensors):
        add(name, _NAMES[tensors[name].dtype])
        for size in tensors[name].shape:
            pieces.append(torch.frombuffer(bytearray(b"%d," % size), dtype=torch.uint8))
        pieces.append(_bytes(tensors[name]))
    return f"xxh3-128:{torch.ops.hkt.checksum(pieces)}"


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


def check_types(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise TypeError(f"{name} is {tensor.dtype}; a file holds {', '.join(str(dtype) for dtype in _NAMES)}")


def write(path: pathlib.Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Replaces the file atomically."""
    check_types(tensors)
    header: dict[str, Any] = {_METADATA: {**metadata, _CHECKSUM: _checksum(tensors, metadata)}}
    rows, at = [], 0
    # Widest types first, so that every tensor is aligned to its own element.
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        row = _bytes(tensor)
        size = row.numel()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
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
