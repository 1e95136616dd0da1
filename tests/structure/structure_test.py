"""The promises of the folders: include directions, narrow LibTorch includes, every test in a target."""

import json
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["HKT_BUILD_DIR"])

# What a folder may include beside itself (design: "include direction"). Torch says who may include PyTorch's headers.
ALLOWED = {
    "hkt/base": set(),
    "hkt/io": {"hkt/base"},
    "hkt/kernels": {"hkt/base"},
    "hkt/testing": {"hkt/base"},
    "hkt/ops": {"hkt/kernels", "hkt/base"},
    "hkt/nn": {"hkt/ops", "hkt/io", "hkt/base"},
    "hkt/data": {"hkt/io", "hkt/base"},
    "hkt/train": {"hkt/nn", "hkt/ops", "hkt/data", "hkt/io", "hkt/base"},
    "hkt/analysis": {"hkt/train", "hkt/nn", "hkt/ops", "hkt/data", "hkt/io", "hkt/base"},
    "hkt/report": {"hkt/io", "hkt/base"},
    "bench": {"hkt/train", "hkt/nn", "hkt/ops", "hkt/data", "hkt/kernels", "hkt/base"},
    "cli": {"bench", "hkt/analysis", "hkt/report", "hkt/train", "hkt/nn", "hkt/ops", "hkt/data", "hkt/io", "hkt/base", "hkt/kernels"},
}
TORCH_FOLDERS = {"hkt/ops", "hkt/nn", "hkt/train", "hkt/analysis", "bench", "cli"}
TORCH_FILES = {"hkt/data/tensors.h", "hkt/data/tensors.cc"}  # the one adapter
TORCH = re.compile(r"^(torch|ATen|c10)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)


def room_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] in ("bench", "cli") else "/".join(parts[:2])


def is_test(path):
    return path.endswith(("_test.cc", "_test_util.h", "_test_util.cc"))


def problems_of(path, text):
    """What is wrong with the includes of the file `path` (from the root) that holds `text`."""
    room, found = room_of(path), []
    if room not in ALLOWED:
        return [f"{path}: folder {room} is not in the table of this test"]
    for header in INCLUDE.findall(text):
        if header == "torch/torch.h":
            found.append(f"{path}: includes torch/torch.h, 30 s a file; include the narrow headers")
        if TORCH.match(header):
            if room not in TORCH_FOLDERS and path not in TORCH_FILES and not (room == "hkt/data" and is_test(path)):
                found.append(f"{path}: includes {header}; {room} is free of PyTorch")
        elif header.startswith(("hkt/", "cli/", "bench/")):
            other = room_of(header)
            allowed = ALLOWED[room] | {room} | ({"hkt/testing"} if is_test(path) else set())
            if other not in allowed:
                found.append(f"{path}: includes {header}; {room} may include {sorted(ALLOWED[room])} only")
    return found


def sources(*patterns):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=SOURCE, text=True,
                            capture_output=True, check=True).stdout.split()
    return [path for path in listed if (SOURCE / path).exists()]


class StructureTest(unittest.TestCase):
    def test_include_directions(self):
        found = []
        files = [p for p in sources("*.cc", "*.h") if p.startswith(("hkt/", "cli/", "bench/"))]
        self.assertGreater(len(files), 20)
        for path in files:
            found += problems_of(path, (SOURCE / path).read_text())
        self.assertEqual(found, [])

    def test_the_check_sees_each_kind(self):
        wrong = {
            "hkt/base/x.h": '#include "hkt/io/file.h"',
            "hkt/io/x.cc": "#include <ATen/core/Tensor.h>",
            "hkt/data/x.cc": "#include <torch/types.h>",
            "hkt/ops/x.cc": '#include "hkt/nn/classifier.h"',
            "hkt/nn/x.cc": "#include <torch/torch.h>",
            "hkt/nn/y.cc": '#include "hkt/testing/compare.h"',
            "hkt/train/x.cc": '#include "cli/output.h"',
            "hkt/novel/x.cc": "",
        }
        for path, text in wrong.items():
            self.assertEqual(len(problems_of(path, text)), 1, path)
        for path, text in {"hkt/nn/x_test.cc": '#include "hkt/testing/compare.h"', "hkt/data/tensors.cc": "#include <ATen/core/Tensor.h>"}.items():
            self.assertEqual(problems_of(path, text), [])

    def test_every_test_is_in_a_target(self):
        compiled = {str(pathlib.Path(entry["file"]).resolve()) for entry in json.loads((BUILD / "compile_commands.json").read_text())}
        tests = sources("*_test.cc")
        self.assertGreater(len(tests), 5)
        self.assertEqual([t for t in tests if str((SOURCE / t).resolve()) not in compiled], [])
        registered = subprocess.run(["ctest", "--show-only=json-v1"], cwd=BUILD, text=True, capture_output=True, check=True).stdout
        names = {test["name"] for test in json.loads(registered)["tests"]}
        for path in sources("tests/*_test.py"):
            label, file = path.split("/")[-2:]
            self.assertIn(f"{label}_{file[:-3]}", names)

    def test_no_machine_in_tracked_files(self):
        found = subprocess.run(["git", "grep", "-nIE", r"(^|[^A-Za-z0-9_.])/(work|farm|root)/", "--", ".", ":!tests/structure"],
                               cwd=SOURCE, text=True, capture_output=True).stdout
        self.assertEqual(found, "")


if __name__ == "__main__":
    unittest.main()
