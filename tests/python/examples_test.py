"""examples/python: short, and the one that needs PyTorch alone does what it says. Those of Transformers and Lightning run in
`make check` (tests/python/long)."""

import os
import pathlib
import sys
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

EXAMPLES = pathlib.Path(os.environ["HKT_SOURCE_DIR"]) / "examples/python"
sys.path.insert(0, str(EXAMPLES))

import plain_pytorch


class ExamplesTest(unittest.TestCase):
    def test_each_is_under_a_hundred_lines_and_has_a_test(self):
        long_tests = "".join(p.read_text() for p in (pathlib.Path(__file__).parent / "long").glob("*_check.py"))
        names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            self.assertLess(len((EXAMPLES / f"{name}.py").read_text().splitlines()), 100, name)
            self.assertTrue(name == "plain_pytorch" or f"import {name}" in long_tests, name)

    def test_plain_pytorch(self):
        own, before, after, tuned = plain_pytorch.main(steps=60)
        self.assertLess(own[-1], 0.8 * own[0])
        self.assertLess(tuned[-1], 0.8 * tuned[0])
        self.assertLess((after - before).abs().max(), 1e-5)  # logits of about 1
        self.assertGreater((after - before).abs().max(), 0)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
