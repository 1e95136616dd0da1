"""hkt data multiscale: tables, JSON, the file it writes, wrong options."""

import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
SMALL = ["--pairs", "20000", "--levels", "5"]


def multiscale(*arguments):
    return subprocess.run([PROGRAM, "data", "multiscale", *arguments], capture_output=True, text=True, timeout=300)


def header_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])


class MultiscaleTest(unittest.TestCase):
    def test_one_level_has_no_slope_and_no_error_to_decompose(self):
        done = multiscale("--levels", "1", "--pairs", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("target of 1 level,", done.stdout)
        self.assertNotIn("nan", done.stdout)
        self.assertIn("mean slope of log sqrt(E_H) on L: -, closed form -", done.stdout)
        self.assertRegex(done.stdout, r"  1( +0\.00000){5} +-\n")
        document = json.loads(multiscale("--levels", "1", "--pairs", "100", "--json").stdout)
        self.assertIsNone(document["two_tokens"]["gaussian"]["log_slope"])
        self.assertIsNone(document["pyramid"]["rows"][0]["gap"])

    def test_measured_beside_closed_forms(self):
        done = multiscale(*SMALL, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["kappa"], 48)
        for kind in ("gaussian", "heavy"):
            report = document["two_tokens"][kind]
            self.assertEqual(len(report["rows"]), 5)
            for row in report["rows"]:
                self.assertLess(abs(row["gap"]), 1e-9)
                self.assertLessEqual(row["hierarchical"], row["tail_bound"] + 1e-12)
                self.assertAlmostEqual(row["quantisation"], row["quantisation_closed"], delta=0.1 * row["quantisation_closed"] + 1e-12)
        one = document["one_token"]
        ratio = one["heavy"]["rows"][0]["hierarchical"] / one["gaussian"]["rows"][0]["hierarchical"]
        self.assertAlmostEqual(ratio, 2, delta=0.3)
        self.assertAlmostEqual(document["pyramid"]["decay_rate"], 0.6, delta=1e-9)

    def test_tables_and_file(self):
        with tempfile.TemporaryDirectory(prefix="hkt-multiscale-") as folder:
            path = pathlib.Path(folder) / "pairs.safetensors"
            done = multiscale(*SMALL, "--kappa", "40", "--rho", "0.5", "--out", str(path))
            self.assertEqual(done.returncode, 0, done.stderr)
            for words in ("Gaussian tokens", "heavy-tailed tokens, kappa 40", "one token", "pyramid", str(path)):
                self.assertIn(words, done.stdout)
            self.assertTrue(re.search(r"closed form -0\.7", done.stdout), done.stdout)  # log 0.5 = -0.69, and a cut tail
            header = header_of(path)
            self.assertEqual(header["token_i"]["shape"], [20000, 5, 4])
            self.assertEqual(header["target"]["shape"], [20000])
            self.assertEqual(header["__metadata__"]["rho"], "0.5")

    def test_wrong_options_are_one_line(self):
        for words, arguments in [("rho is 2", ["--rho", "2"]), ("kappa is 5", ["--kappa", "5"]), ("levels is 0", ["--levels", "0"])]:
            done = multiscale(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
