"""hkt analyze on run folders: files, tables, keys as documented, one line for what is wrong."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
TINY = ["--preset", "tiny", "--d-model", "8", "--d-ff", "8", "--layers", "2", "--batch", "4", "--steps", "2",
        "--eval-every", "0", "--threads", "1", "--quiet"]


def hkt(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)


def keys_of(value):
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys_of, value)) if value else set()
    return set()


class AnalyzeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_analyze_test_"))
        cls.run_folder = str(cls.root / "run")
        cls.fusion = str(cls.root / "fusion")
        for arguments in ([cls.run_folder], [cls.fusion, "--model", "hkt-fusion"]):
            done = hkt("train", *TINY, "--out", *arguments)
            if done.returncode != 0:
                raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def test_tables_and_document(self):
        maps = self.root / "maps"
        done = hkt("analyze", self.run_folder, "--init", "--compare", self.fusion, "--examples", "20", "--example", "3",
                   "--export", str(maps))
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("kernel:", "direction:", "mixture:", "levels removed", "cost:", "side by side", "example 3", "18.4 %"):
            self.assertIn(words, done.stdout)
        self.assertNotIn("nan", done.stdout.lower())
        self.assertIn("validation sequences 64/64", done.stderr)
        self.assertIn("compare: levels removed", done.stderr)
        document = json.loads((pathlib.Path(self.run_folder) / "analysis.json").read_text())
        self.assertEqual(document["example"]["index"], 3)
        self.assertEqual(document["compare"]["model"], "hkt-fusion")
        files = document["example"]["exported"]["files"]
        self.assertEqual({p.name for p in maps.iterdir()}, set(files))
        documented = set(re.findall(r"`(\w+)`", (SOURCE / "docs" / "analyze.md").read_text()))
        self.assertFalse(keys_of(document) - documented)

    def test_json_is_the_document(self):
        done = hkt("analyze", self.run_folder, "--examples", "5", "--json", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout), json.loads((pathlib.Path(self.run_folder) / "analysis.json").read_text()))
        self.assertEqual(json.loads(done.stdout)["levels_removed"]["samples"], 5)

    def test_a_text_of_ones_own(self):
        text = "[MAX 2 9 [MIN 4 7 ] 0 ]"
        done = hkt("analyze", self.run_folder, "--text", text, "--examples", "5", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^the text: 9 tokens, predicted \d ")
        example = json.loads((pathlib.Path(self.run_folder) / "analysis.json").read_text())["example"]
        self.assertEqual((example["index"], example["label"], example["length"]), (None, None, 9))
        self.assertEqual(example["tokens"], text.split())
        self.assertEqual([len(row) for row in example["matrices"][0]["attention"]], list(range(1, 10)))
        predicted = json.loads(hkt("predict", self.run_folder, "--text", text, "--json").stdout)
        self.assertIn(example["predicted"], json.dumps(predicted))
        page = self.root / "text.html"
        done = hkt("report", self.run_folder, "-o", str(page))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_wrong_is_one_line(self):
        broken = self.root / "broken"
        shutil.copytree(self.run_folder, broken)
        (broken / "analysis.json").unlink(missing_ok=True)
        with open(broken / "model.safetensors", "r+b") as file:
            file.truncate(1000)
        cases = [
            (1, "nowhere", ["analyze", "nowhere"]),
            (1, "model.safetensors", ["analyze", str(broken)]),
            (1, "nowhere", ["analyze", self.run_folder, "--compare", "nowhere"]),
            (2, "--examples is 0", ["analyze", self.run_folder, "--examples", "0"]),
            (2, "--example is -1", ["analyze", self.run_folder, "--example", "-1"]),
            (2, "--text is blank", ["analyze", self.run_folder, "--text", "  "]),
            (2, "longest sequence, 96 tokens", ["analyze", self.run_folder, "--text", "[MAX " + "1 " * 200 + "]"]),
            (1, "--text: ", ["analyze", self.run_folder, "--text", "[MAX what ]"]),
            (2, "--example", ["analyze", self.run_folder, "--text", "1", "--example", "1"]),
            (2, "threads is -3", ["analyze", self.run_folder, "--threads", "-3"]),
        ]
        for status, words, arguments in cases:
            done = hkt(*arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)
        self.assertFalse((broken / "analysis.json").exists())


if __name__ == "__main__":
    unittest.main()
