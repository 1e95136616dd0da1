"""Images, labelled text and the cache through the program: read, train, resume, evaluate, predict."""

import io
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tarfile
import tempfile
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
SMALL = ["--d-model", "8", "--d-ff", "8", "--layers", "1", "--heads", "2", "--batch", "4", "--threads", "1", "--eval-every", "0"]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def record(label, key):
    return bytes([label]) + random.Random(key).randbytes(3072)


def write_cifar10(path):
    """Two records a class and file, in the authors' layout."""
    with tarfile.open(path, "w:xz") as archive:
        files = {"batches.meta.txt": "\n".join(CLASSES).encode() + b"\n\n"}
        for number, name in enumerate(["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]):
            files[name + ".bin"] = b"".join(record(i % 10, 100 * number + i) for i in range(20))
        for name, content in files.items():
            member = tarfile.TarInfo("cifar-10-batches-bin/" + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def tensor_bytes(path):
    content = pathlib.Path(path).read_bytes()
    return content[8 + struct.unpack("<Q", content[:8])[0]:]


class DataTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_data_test_"))
        self.environment = os.environ | {"HKT_CACHE": str(self.root / "cache")}

    def tearDown(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def run_hkt(self, *arguments, status=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=240, env=self.environment)
        self.assertEqual(done.returncode, status, done.stderr)
        if status:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr
        return done.stdout

    def document(self, *arguments):
        return json.loads(self.run_hkt(*arguments, "--json"))

    def test_images(self):
        archive = self.root / "cifar-10-binary.tar.xz"
        write_cifar10(archive)
        task = ["--task", "cifar10", "--data", archive]
        described = self.document("data", "describe", *task)
        self.assertEqual(described["classes"], CLASSES)
        self.assertEqual({name: split["examples"] for name, split in described["splits"].items()},
                         {"train": 90, "validation": 10, "test": 20})
        self.assertEqual(described["splits"]["test"]["lengths"]["min"], 1024)
        floors = self.document("data", "floors", *task)
        self.assertEqual(set(floors["floors"]), {"majority", "count_regression", "value_regression"})
        self.assertAlmostEqual(floors["standard_error"]["majority"]["test"], (0.1 * 0.9 / 20) ** 0.5)
        images = self.root / "images.bin"
        images.write_bytes(b"".join(record(3, key) for key in range(3)))
        for colours in ([], ["--rgb"]):
            with self.subTest(colours=colours):
                stem = self.root / ("rgb" if colours else "grey")
                train = ["train", *task, *colours, *SMALL, "--model", "hkt", "--levels", "2", "--augment", "--quiet", "--save-every", "1"]
                self.run_hkt(*train, "--steps", "6", "--out", f"{stem}-whole")
                self.run_hkt(*train, "--steps", "6", "--out", f"{stem}-parts", "--max-time", "0.000001")
                self.run_hkt("train", "--resume", "--out", f"{stem}-parts", "--quiet")
                self.assertEqual(tensor_bytes(f"{stem}-whole/model.safetensors"), tensor_bytes(f"{stem}-parts/model.safetensors"))
                self.run_hkt(*[a for a in train if a != "--augment"], "--steps", "6", "--out", f"{stem}-plain")
                self.assertNotEqual(tensor_bytes(f"{stem}-whole/model.safetensors"), tensor_bytes(f"{stem}-plain/model.safetensors"))
                self.assertEqual(self.document("eval", f"{stem}-whole")["samples"], 20)
                self.assertEqual(len(self.run_hkt("predict", f"{stem}-whole", images).splitlines()), 3)
                self.run_hkt("train", *task, *colours, *SMALL, "--dry-run")
        self.assertIn("1024 pixels", self.run_hkt("train", *task, "--seq-len", "512", status=2))

    def test_labelled_text(self):
        lines = [f"{label}\t{label} {i} {'x' * (i % 50)}" for i in range(40) for label in ("ham", "spam", "eggs")]
        data = self.root / "mail.tsv"
        data.write_text("\n".join(lines) + "\n")
        run = self.root / "run"
        self.run_hkt("train", "--task", "text", "--data", data, *SMALL, "--model", "mha", "--steps", "40", "--lr", "0.01",
                     "--seq-len", "32", "--quiet", "--out", run)
        self.assertEqual([row["name"] for row in self.document("eval", run)["classes"]], ["eggs", "ham", "spam"])
        self.assertIn("3 classes", self.run_hkt("data", "describe", "--task", "text", "--data", data))
        self.run_hkt("train", "--task", "text", "--data", data, *SMALL, "--dry-run")
        self.assertIn("--data PATH", self.run_hkt("train", "--task", "text", *SMALL, "--dry-run", status=2))
        test = self.root / "later.csv"
        test.write_text('label,text\nham,"one, two"\n')
        (self.root / "folder").mkdir()
        shutil.copy(data, self.root / "folder" / "train.tsv")
        test.rename(self.root / "folder" / "test.csv")
        self.assertEqual(self.document("eval", run, "--data", self.root / "folder")["samples"], 1)
        data.unlink()
        predicted = self.document("predict", run, "--text", "spam 3 xxx")
        self.assertEqual(predicted["classes"], ["eggs", "ham", "spam"])
        (self.root / "folder" / "test.csv").write_text("label,text\ntoast,x\n")
        self.assertIn("the label 'toast' is none of the model's classes",
                      self.run_hkt("eval", run, "--data", self.root / "folder", status=1))

    def test_the_cache(self):
        archive = self.root / "cifar-10-binary.tar.xz"
        write_cifar10(archive)
        first = self.run_hkt("data", "describe", "--task", "cifar10", "--data", archive)
        listed = self.document("data", "cache")
        self.assertEqual(listed["folder"], str(self.root / "cache"))
        self.assertEqual(sorted(e["split"] for e in listed["entries"]), ["test", "train", "validation"])
        self.assertTrue(all(e["ok"] and e["path"] == str(archive) for e in listed["entries"]))
        entry = self.root / "cache" / listed["entries"][0]["file"]
        entry.write_bytes(entry.read_bytes()[:-1] + b"!")
        self.assertIn("DAMAGED", self.run_hkt("data", "cache"))
        self.assertEqual(self.run_hkt("data", "describe", "--task", "cifar10", "--data", archive), first)
        self.assertNotIn("DAMAGED", self.run_hkt("data", "cache"))
        self.assertEqual(self.document("data", "cache", "--clear")["removed"], 3)
        self.assertEqual(self.document("data", "cache")["entries"], [])
        self.environment["HKT_CACHE"] = "0"
        self.assertIsNone(self.document("data", "cache")["folder"])
        self.assertEqual(self.run_hkt("data", "describe", "--task", "cifar10", "--data", archive), first)
        # A full disk, as a file size limit: a warning, and all goes on.
        self.environment["HKT_CACHE"] = str(self.root / "cache")
        done = subprocess.run(f"ulimit -f 8; exec {PROGRAM} data describe --task cifar10 --data {archive}", shell=True,
                              capture_output=True, text=True, timeout=240, env=self.environment, executable="/bin/bash")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, first)
        self.assertIn("going on without the cache", done.stderr)

    def test_the_ladder(self):
        ladder = self.document("data", "ladder", "--preset", "tiny")
        self.assertEqual(list(ladder["ladder"]), ["majority", "root_operator", "depth_1", "depth_2", "depth_3"])
        self.assertEqual(ladder["ladder"]["depth_3"]["accuracy"], 1)
        self.assertEqual(set(ladder["ladder"]["depth_1"]["by_root_operator"]), {"MIN", "MAX", "MED", "SM"})
        self.assertIn("ListOps", self.run_hkt("data", "ladder", "--task", "imdb", status=2))
        self.assertIn("--seq-len", self.run_hkt("data", "ladder", "--preset", "tiny", "--seq-len", "20", status=2))


if __name__ == "__main__":
    unittest.main()
