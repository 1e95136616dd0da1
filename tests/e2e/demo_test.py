"""The demo at smoke size: both models trained on the same data, one table, the paths of the two run folders."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])


class DemoTest(unittest.TestCase):
    def test_two_runs_and_a_table(self):
        root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, root)
        out = root / "demo"
        done = subprocess.run(["sh", SOURCE / "scripts/demo.sh"], capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
                              env={**os.environ, "HKT_DEMO_STEPS": "3", "HKT_DEMO_OUT": str(out)})
        self.assertEqual(done.returncode, 0, done.stderr)
        for model in ["hkt", "mha"]:
            self.assertIn(f"run folder: {out / model}", done.stdout)
            for file in ["config.json", "metrics.jsonl", "model.safetensors", "state.safetensors", "eval.json"]:
                self.assertTrue((out / model / file).exists(), file)
        lines = done.stdout.splitlines()
        head = next(line for line in lines if "test accuracy" in line)
        for column in ["majority class", "loss", "parameters", "tokens/s", "wall time"]:
            self.assertIn(column, head)
        rows = [line for line in lines if line.startswith(("HKT (", "standard attention"))]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertRegex(row, r"\d+\.\d\d ± \d+\.\d\d %\s+\d+\.\d\d %\s+\d\.\d{3}\s+[\d,]+\s+[\d,]+\s+\d+ s")


if __name__ == "__main__":
    unittest.main()
