"""Right inputs for the fuzz targets to start from: seeds.py FOLDER fills FOLDER/<target>/ and says in FOLDER/<target>.len
how long an input may get."""

import gzip
import io
import json
import lzma
import pathlib
import struct
import sys
import tarfile


def tar(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"hello"))
    return out.getvalue()


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def main():
    plain = tar(["aclImdb/train/neg/0_3.txt", "aclImdb/test/pos/1_10.txt"])
    seeds = {
        "listops": (400, [b"[MAX 2 9 [MIN 4 7 ] 0 ]", b"[MED 1 2 ]", b"[SM 3 [SM 1 2 9 ] ]", b"7"]),
        "cifar10": (7000, [bytes(3073), bytes([9]) + bytes(range(256)) * 12, bytes(3072)]),
        "archive": (12000, [plain, gzip.compress(plain, mtime=0), lzma.compress(plain)]),
        "safetensors": (400, [
            safetensors({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
            safetensors({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}, "__metadata__": {"k": "v"}}, b"x"),
        ]),
        "config": (600, [b'{"model": "hkt-fusion", "levels": 2, "lr": 0.003, "hybrid": null}', b'{"task": "imdb"}', b"{}"]),
        "text": (300, [b'label,text\r\npos,"a ""b"",\nc"\r\nneg,d\r\n', b"pos\ta b\r\nneg\tc\n", b"text,x,label\n1,2,3\n"]),
    }
    folder = pathlib.Path(sys.argv[1])
    for target, (length, inputs) in seeds.items():
        (folder / target).mkdir(parents=True)
        (folder / f"{target}.len").write_text(str(length))
        for i, data in enumerate(inputs):
            (folder / target / f"seed{i}").write_bytes(data)


if __name__ == "__main__":
    main()
