"""The committed results, and what is made of them: docs/results-tables.md, the report's page, the README's table."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
PROGRAM = os.environ["HKT_PROGRAM"]
RESULTS = SOURCE / "experiments/results"


def strings(value):
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


class ResultsTest(unittest.TestCase):
    def test_tables_and_page_are_those_of_the_results(self):
        with tempfile.TemporaryDirectory(prefix="hkt-results-") as folder:
            begin = time.monotonic()
            made = pathlib.Path(folder)
            done = subprocess.run(["sh", SOURCE / "scripts/results.sh", made / "tables.md", made / "report.html"],
                                  capture_output=True, text=True, env={**os.environ, "HKT_PROGRAM": PROGRAM})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(time.monotonic() - begin, 60)
            self.assertTrue((made / "tables.md").read_text() == (SOURCE / "docs/results-tables.md").read_text(),
                            "docs/results-tables.md is of other results; make results")
            page = (made / "report.html").read_text()
            self.assertLess(len(page.encode()), 5e6)
        done, planned = re.match(r"(?s).*?\n(\d+) of (\d+) runs", (SOURCE / "docs/results-tables.md").read_text()).groups()
        self.assertTrue(f'"runs_planned":{planned},"runs_done":{done},' in page, "the page is of other results")

    def test_results_hold_no_place_of_a_machine(self):
        files = [path for path in RESULTS.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 10)
        for path in files:
            self.assertIn(path.suffix, (".json", ".jsonl"), path)
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
                for text in strings(json.loads(line)):
                    self.assertFalse(text.startswith(("/", "~")), f"{path}: {text}")

    def test_examples_are_our_own(self):
        runs = sorted((RESULTS / "runs").iterdir())
        self.assertTrue(runs)
        for run in runs:
            example = json.loads((run / "analysis.json").read_text())["example"]
            self.assertIsNone(example["index"], f"{run}: an example of the data; hkt analyze --text")

    def test_the_readme_quotes_the_tables(self):
        section = re.search(r"(?ms)^## Results\n(.*?)^## ", (SOURCE / "README.md").read_text())
        self.assertIsNotNone(section)
        rows = [line for line in section[1].splitlines() if line.startswith("| ") and "±" in line]
        self.assertTrue(rows)
        tables = (SOURCE / "docs/results-tables.md").read_text()
        for row in rows:
            self.assertTrue(row in tables, f"not a row of docs/results-tables.md: {row}")


if __name__ == "__main__":
    unittest.main()
