"""The page of `hkt report` in headless Chromium, with the network off: tests/browser/page.test.mjs does it, on made-up data.

Needs node, Chromium and the packages of package.json (`make setup-tests` installs all three); without one of them the test
does not run and says so. CHROMIUM names another Chromium, Chrome or Edge."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import fixtures  # noqa: E402

PROGRAM = os.environ["HKT_PROGRAM"]


def chromium():
    found = subprocess.run(["sh", HERE.parents[1] / "scripts/find_chromium.sh"], text=True, capture_output=True)
    return found.stdout.strip() if found.returncode == 0 else None


def missing():
    """What keeps the browser tests from running, or None."""
    if not shutil.which("node"):
        return "node is not there"
    if not chromium():
        return "Chromium is not there (apt-get install chromium, or set CHROMIUM)"
    for package in ("playwright-core", "axe-core"):
        if not (HERE / "node_modules" / package).is_dir():
            return f"{package} is not there (make setup-tests, or npm ci in tests/browser)"
    return None


class PageTest(unittest.TestCase):
    def setUp(self):
        reason = missing()
        if reason:
            print(f"The browser tests of the report did NOT run: {reason}", file=sys.stderr)
            self.skipTest(reason)

    def test_figures_of_the_readme(self):
        with tempfile.TemporaryDirectory(prefix="hkt-figures-") as folder:
            root = pathlib.Path(folder)
            fixtures.experiments(root / "experiments")

            def draw():
                return subprocess.run(["sh", HERE.parents[1] / "scripts/figures.sh", root / "figures"], text=True, capture_output=True,
                                      env={**os.environ, "HKT_EXPERIMENTS": str(root / "experiments")}, timeout=120)
            done = draw()
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in ("accuracy", "comparisons"):
                self.assertTrue((root / "figures" / f"{name}.svg").read_text().startswith("<svg"))
            shutil.rmtree(root / "experiments/results")
            done = draw()
            self.assertEqual((done.returncode, done.stderr), (1, "figures: the report has no plot 'accuracy' yet\n"))

    def test_in_chromium(self):
        with tempfile.TemporaryDirectory(prefix="hkt-page-") as folder:
            root = pathlib.Path(folder)
            fixtures.experiments(root / "experiments", missing=("imdb-hkt-s2", "imdb-hkt-s3", "cifar10-mha"))
            fixtures.run_folder(root / "hostile", classes=("<b>bad</b>", "=1+1"))
            listops = ["[MAX", "[MIN", "3", "4", "]"] + [str(i % 10) for i in range(55)] + ["]"]
            fixtures.run_folder(root / "listops", task="listops", tokens=listops, classes=tuple("0123456789"))
            fixtures.run_folder(root / "pixels", task="cifar10", tokens=[str(i % 256) for i in range(256)], classes=("cat", "dog"))
            fixtures.run_folder(root / "bare", analysis=False)
            for name, arguments in {"whole": ["hostile", "listops", "pixels", "bare", "--experiments"], "bare": ["bare"]}.items():
                done = subprocess.run([PROGRAM, "report", *arguments, "-o", f"{name}.html", "--json"], cwd=root, text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                (root / f"{name}.json").write_text(done.stdout)
                json.loads(done.stdout)
            done = subprocess.run(["node", "--test", str(HERE / "page.test.mjs")], cwd=HERE, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env={**os.environ, "CHROMIUM": chromium(), "PAGES": str(root)}, timeout=300)
            print(done.stdout, file=sys.stderr)
            self.assertEqual(done.returncode, 0)
            self.assertNotIn("# tests 0", done.stdout)


if __name__ == "__main__":
    unittest.main()
