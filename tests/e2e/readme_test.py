"""The commands of README and docs run as they stand.

Every fenced block marked `sh` or `python` is run, a page's blocks one after the other in one empty folder. There `hkt` is a
wrapper of the program that makes training small (SMALL below) and turns every ListOps preset into `tiny`, and
aclImdb_v1.tar.gz is a small archive in the authors' layout. Blocks marked `no-test` are not run; each of their commands must
match NOT_RUN.
"""

import io
import os
import pathlib
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["HKT_BUILD_DIR"])
PROGRAM = os.environ["HKT_PROGRAM"]
PAGES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").glob("*.md"))]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)
KINDS = {"sh", "sh no-test", "python", "python no-test", "cpp", "cmake", "json", ""}
NOT_RUN = [re.compile(p) for p in (
    r"git clone \S+", r"cd \S+", r"(TORCH_INDEX_URL=\S+ )?make (demo|test|check|build|bench|format|results figures)([ ]+#.*)?", r"pip install \.",
    r'export PATH="\$PWD/build/release:\$PATH"', r"cmake --preset release", r"cmake --build --preset release",
    r"cmake --install build/release --prefix PREFIX", r'(HKT_DATA=\S+ )?ctest --preset release( -[LR] ("[\w|]+"|\w+))?( --output-on-failure)?',
    r"tensorboard --logdir \S+", r"hkt analyze runs/(first|experiments/)[^#]*(#.*)?", r"cp runs/experiments/\S+ experiments/results/runs/\S+",
    r"hkt bench train --json > experiments/results/step.json[ ]+#.*",
    r"(HKT_DATA=\S+ )?hkt reproduce [^#]*(#.*)?", r"hkt report [^#]*--experiments[^#]*(#.*)?", r"from safetensors.torch import load_file", r'weights = load_file\("\S+"\)')]

WRAPPER = '''#!{python}
import os, sys
SMALL = {{"--steps": "3", "--batch": "32", "--d-model": "8", "--d-ff": "8", "--eval-every": "0", "--log-every": "1"}}
args = sys.argv[1:]
def put(flag, value):
    if flag in args:
        args[args.index(flag) + 1] = value
    else:
        args.extend([flag, value])
if args[:1] == ["train"]:
    for flag, value in SMALL.items():
        put(flag, value)
if args[:1] in (["train"], ["data"]) and "imdb" not in args and args[1:2] != ["cache"]:
    put("--preset", "tiny")
os.execv({program!r}, [{program!r}] + args)
'''


def blocks(page):
    """(kind, text, line) of every fenced block."""
    text = page.read_text()
    return [(m[1].strip(), m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def make_imdb(path):
    draw = random.Random(1)
    words = "a film not good bad great dull the plot <br /> é 7/10".split()
    with tarfile.open(path, "w:gz") as archive:
        for part in ("test", "train"):
            for label in ("pos", "neg"):
                for i in range(12):
                    text = " ".join(draw.choices(words, k=draw.randint(1, 300))).encode()
                    entry = tarfile.TarInfo(f"aclImdb/{part}/{label}/{i}_{draw.randint(7, 10) if label == 'pos' else draw.randint(1, 4)}.txt")
                    entry.size = len(text)
                    archive.addfile(entry, io.BytesIO(text))


class ReadmeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hkt-readme-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        (cls.root / "bin").mkdir()
        wrapper = cls.root / "bin" / "hkt"
        wrapper.write_text(WRAPPER.format(python=sys.executable, program=PROGRAM))
        wrapper.chmod(0o755)
        make_imdb(cls.root / "imdb.tar.gz")

    def run_page(self, page):
        folder = self.root / page.stem
        (folder / "build").mkdir(parents=True)
        (folder / "build" / "release").symlink_to(BUILD)
        (folder / "aclImdb_v1.tar.gz").symlink_to(self.root / "imdb.tar.gz")
        environment = os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        for kind, text, line in blocks(page):
            if kind not in ("sh", "python"):
                continue
            command = ["bash", "-euo", "pipefail", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
            done = subprocess.run(command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL, timeout=120,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, f"{page.name}:{line}\n{text}\n{done.stdout}")

    def test_blocks_are_of_known_kinds(self):
        for page in PAGES:
            for kind, _, line in blocks(page):
                self.assertIn(kind, KINDS, f"{page.name}:{line}")

    def test_blocks_that_are_not_run_are_on_the_list(self):
        for page in PAGES:
            for kind, text, line in blocks(page):
                for command in text.splitlines() if kind.endswith("no-test") else []:
                    self.assertTrue(any(p.fullmatch(command) for p in NOT_RUN), f"{page.name}:{line}: {command}")

    def test_readme_trains_evaluates_and_predicts(self):
        text = "".join(t for kind, t, _ in blocks(SOURCE / "README.md") if kind == "sh")
        for command in ("hkt train --task listops", "hkt train --task imdb", "hkt eval", "hkt predict"):
            self.assertIn(command, text)


def page_test(page):
    return lambda self: self.run_page(page)


for page in PAGES:
    setattr(ReadmeTest, f"test_{page.stem.lower().replace('-', '_')}_runs", page_test(page))

if __name__ == "__main__":
    unittest.main()
