"""hkt report: what it reads, what it computes from it, what it refuses. The page itself: tests/browser."""

import base64
import copy
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
PROGRAM = os.environ["HKT_PROGRAM"]
sys.path.insert(0, str(SOURCE / "tests/browser"))
import fixtures  # noqa: E402


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hkt-report-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def run_report(self, *arguments):
        return subprocess.run([PROGRAM, "report", *map(str, arguments)], cwd=self.root, text=True, capture_output=True)

    def report(self, *arguments):
        done = self.run_report(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *arguments, status=1):
        done = self.run_report(*arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual([path.name for path in self.root.glob("report.html")], [])
        return done.stderr

    def test_the_page_is_one_file_that_asks_for_nothing(self):
        fixtures.experiments(self.root / "experiments")
        fixtures.run_folder(self.root / "run")
        done = self.run_report("run", "--experiments")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tier small: 46 of 46 runs", done.stdout)
        page = (self.root / "report.html").read_text()
        self.assertLess(len(page), 5_000_000)
        before, data, after = re.fullmatch(r'(.*<script type="application/json" id="report-data">)(.*?)(</script>.*)', page, re.S).groups()
        self.assertEqual(json.loads(data), self.report("run", "--experiments"))
        self.assertNotIn("<", data)
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', before)[1]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(before + after, r'<(?:script|link|img|iframe)[^>]*\b(?:src|href)\s*=')
        import hashlib
        scripts = re.findall(r"<script>(.*?)</script>", after, re.S)
        self.assertEqual(len(scripts), 4)
        for kind, texts in (("script-src", scripts), ("style-src", re.findall(r"<style>(.*?)</style>", before, re.S))):
            allowed = re.search(rf"{kind} ([^;]*)", policy)[1].split()
            own = ["'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in texts]
            self.assertEqual(allowed, own)

    def test_figures_are_those_of_the_results(self):
        fixtures.experiments(self.root / "experiments", missing=("imdb-hkt-s2", "cifar10-mha-conv"))
        experiments = self.report("--experiments")["experiments"]
        self.assertEqual((experiments["runs_done"], experiments["runs_planned"]), (44, 46))
        self.assertEqual([(m["name"], m["seeds"]) for m in experiments["missing"]], [("imdb-hkt", [2]), ("cifar10-mha-conv", [1])])
        results = {path.stem: json.loads(path.read_text()) for path in (self.root / "experiments/results/small").glob("*.json")}
        accuracy = {name: result["test"]["accuracy"] for name, result in results.items()}
        for task in experiments["tasks"]:
            for row in task["rows"]:
                own = [accuracy[f"{row['name']}-s{seed}"] for seed in row["seeds"]]
                if not own:
                    self.assertIsNone(row["test"])
                    continue
                self.assertTrue(math.isclose(row["test"]["mean"], statistics.fmean(own), rel_tol=1e-12))
                if len(own) > 1:
                    self.assertTrue(math.isclose(row["test"]["deviation"], statistics.stdev(own), rel_tol=1e-9))
                else:
                    self.assertIsNone(row["test"]["deviation"])
        imdb = next(task for task in experiments["tasks"] if task["task"] == "imdb")
        mha = next(one for one in imdb["comparisons"] if one["second"] == "MHA")
        self.assertEqual((mha["seeds"], mha["seeds_planned"]), ([1, 3], 3))
        for difference, seed in zip(mha["differences"], mha["seeds"]):
            self.assertAlmostEqual(difference, accuracy[f"imdb-hkt-s{seed}"] - accuracy[f"imdb-mha-s{seed}"], places=12)
        half = 12.706204736174694 * statistics.stdev(mha["differences"]) / math.sqrt(2)
        self.assertAlmostEqual(mha["high"] - mha["mean"], half, places=9)
        self.assertAlmostEqual(mha["published_gap"], 0.0747, places=12)

        def bits(name):
            test = results[name]["test"]
            packed = base64.b64decode(test["correct"])
            return [packed[i // 8] >> (i % 8) & 1 for i in range(test["examples"])]
        pairs = list(zip(bits("imdb-hkt-s1"), bits("imdb-mha-s1")))
        self.assertEqual((mha["mcnemar"][0]["only_first"], mha["mcnemar"][0]["only_second"]), (pairs.count((1, 0)), pairs.count((0, 1))))
        interaction = next(one for one in imdb["effects"] if one["label"] == "interaction")
        self.assertAlmostEqual(interaction["differences"][0], accuracy["imdb-hkt-s1"] - accuracy["imdb-hkt-fusion-s1"]
                               - accuracy["imdb-mha-conv-s1"] + accuracy["imdb-mha-s1"], places=12)
        cifar = next(task for task in experiments["tasks"] if task["task"] == "cifar10")
        self.assertEqual(next(one for one in cifar["comparisons"] if one["second"] == "MHA+conv")["verdict"], "missing")
        self.assertEqual(next(one for one in cifar["comparisons"] if one["second"] == "HKT fusion")["verdict"], "open")
        ablations = {one["name"]: one for one in experiments["ablations"]}
        self.assertEqual([name for name, one in ablations.items() if one["is_reference"]], ["listops-ablation-base"])
        self.assertEqual(ablations["listops-ablation-k5"]["changes"], {"kernel_size": 5})
        self.assertEqual(experiments["notes"], [])
        trials = {one["name"]: one for one in experiments["trials"]}  # of their own tier
        self.assertEqual(len(trials), 6)
        self.assertEqual(trials["imdb-mha-lr0.002"]["options"], {"lr": 0.002})

    def test_markdown_has_the_same_figures(self):
        fixtures.experiments(self.root / "experiments", missing=("imdb-hkt-s2",))
        done = self.run_report("--experiments", "--markdown", "report.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.root / "report.html").exists())
        text = (self.root / "report.md").read_text()
        for task in self.report("--experiments")["experiments"]["tasks"]:
            for row in task["rows"]:
                mean = f"{100 * row['test']['mean']:.2f}"
                self.assertRegex(text, rf"(?m)^\| {re.escape(row['row'])} \|.*\| {mean}")
        self.assertIn("| 2 of 3 |", text)
        self.assertIn("imdb-hkt (seeds \\[2\\])", text)
        shown = self.report("--experiments")["experiments"]
        for one in shown["ablations"]:
            row = re.escape(one["row"].replace("_", r"\_"))
            self.assertRegex(text, rf"(?m)^\| {row} \({one['task']}\) \|.*\| {100 * one['test']['mean']:.2f}")
        for one in shown["trials"]:
            self.assertIn(f"| {one['name']} | {100 * one['best']['mean']:.2f} |", text)
        for arm in shown["step"]["arms"]:
            self.assertIn(f"{1000 * arm['seconds']:.1f} | {arm['ratio']:.3f} | {arm['memory_bytes'] / 2**20:.0f} | "
                          f"{arm['memory_ratio']:.3f} |", text)
        self.assertEqual({arm["arm"]: arm["memory_ratio"] for arm in shown["step"]["arms"]}["mha"], 1)
        floor = shown["tasks"][[t["task"] for t in shown["tasks"]].index("imdb")]["floors"][0]
        self.assertIn(f"{floor['floor'].replace('_', chr(92) + '_')} {100 * floor['test']:.2f} %", text)
        kurtosis = [level["trained"]["values"] for group in shown["structure"]["groups"] if group["row"] == "HKT"
                    for claim in group["claims"] if claim["key"] == "score_kurtosis" for level in claim["levels"][:1]]
        mean = sum(map(sum, kurtosis)) / sum(map(len, kurtosis))
        self.assertRegex(text, rf"(?m)^\| kurtosis of the scores \| about 33 \| {mean:.3g} / ")

    def test_one_seed_and_none(self):
        fixtures.experiments(self.root / "experiments", seeds=(1,))
        tasks = self.report("--experiments")["experiments"]["tasks"]
        self.assertEqual({one["verdict"] for task in tasks for one in task["comparisons"] + task["effects"]}, {"open"})
        for path in (self.root / "experiments/results").rglob("*.json"):
            path.unlink()
        experiments = self.report("--experiments", self.root / "experiments")["experiments"]
        self.assertEqual(experiments["runs_done"], 0)
        self.assertEqual({one["verdict"] for task in experiments["tasks"] for one in task["comparisons"]}, {"missing"})
        self.assertIsNone(experiments["structure"])
        self.assertEqual(self.run_report("--experiments", "--markdown", "x.md").returncode, 0)

    def test_what_is_unfair_or_foreign_is_said(self):
        fixtures.experiments(self.root / "experiments")
        row = self.root / "experiments/small/imdb-mha.json"
        changed = json.loads(row.read_text())
        changed["config"]["steps"] = 4000
        row.write_text(json.dumps(changed))
        (self.root / "experiments/small/imdb-mha-wide.json").unlink()
        notes = "\n".join(self.report("--experiments")["experiments"]["notes"])
        self.assertIn("imdb-mha, seed 1: steps is 3000 there, 4000 in the experiment", notes)
        self.assertIn("imdb: arms with another budget: HKT", notes.replace("MHA+conv, ", "").replace("HKT fusion, ", ""))
        self.assertIn("imdb-mha-wide, seed 1: a result without an experiment", notes)

    def test_damaged_files_are_one_error_that_names_them(self):
        fixtures.experiments(self.root / "experiments")
        path = self.root / "experiments/results/small/imdb-hkt-s1.json"
        good = json.loads(path.read_text())

        def damage(change):
            document = copy.deepcopy(good)
            change(document)
            return json.dumps(document)
        cases = {
            "truncated": path.read_text()[:-100], "empty": "", "a list": "[]", "foreign": '{"name": "left-pad"}', "not text": "\x00\x01",
            "a newer format": damage(lambda d: d.update(format=2)), "a newer hkt": damage(lambda d: d.update(hkt_version="99.0.0")),
            "no test": damage(lambda d: d.pop("test")), "accuracy above 1": damage(lambda d: d["test"].update(accuracy=61.3)),
            "bits that disagree": damage(lambda d: d["test"].update(accuracy=d["test"]["accuracy"] / 2)),
            "bits cut off": damage(lambda d: d["test"].update(correct=d["test"]["correct"][:-8])),
            "a curve of text": damage(lambda d: d["curve"]["validation"].append(["1", "2", "3", "4", "5"])),
            "an analysis of text": damage(lambda d: d["analysis"].update(levels={"lambda": "high"})),
        }
        for name, text in cases.items():
            with self.subTest(name):
                path.write_text(text)
                self.assertIn("imdb-hkt-s1.json", self.refused("--experiments"))
        path.write_text(json.dumps(good))
        copied = path.with_name("imdb-hkt-s1-copy.json")
        copied.write_text(json.dumps(good))
        self.assertIn("imdb-hkt-s1-copy.json: it says that it is imdb-hkt-s1 of tier small", self.refused("--experiments"))
        copied.unlink()
        (self.root / "experiments/results/step.json").write_text('{"arms": {"hkt": {}}}')
        self.assertIn("step.json: 'seq_len' must be there", self.refused("--experiments"))

    def test_damaged_runs_are_one_error_that_names_the_file(self):
        run = self.root / "run"
        fixtures.run_folder(run)
        whole = {path.name: path.read_text() for path in run.iterdir()}
        for name, text in whole.items():
            end = "\n" if name == "metrics.jsonl" else ""  # a last line without one was cut by a kill, and is passed over
            for wrong in [text[:-20] + end, "{}" + end, "3" + end]:
                with self.subTest(f"{name}: {wrong[:3]}"):
                    (run / name).write_text(wrong)
                    self.assertIn(name, self.refused("run"))
            (run / name).write_text(text)
        analysis = json.loads(whole["analysis.json"])
        analysis["example"]["matrices"][0]["attention"][5] = [0.5]
        (run / "analysis.json").write_text(json.dumps(analysis))
        self.assertIn("example.matrices[0].attention[5]", self.refused("run"))
        for key, value in (("attention", [[1e39]]), ("shape", -1), ("shape", 2.5), ("shape", 10 ** 9), ("shape", "many")):
            with self.subTest(f"{key}: {value}"):
                analysis = json.loads(whole["analysis.json"])
                if key == "shape":
                    analysis["shape"]["layers"] = value
                else:
                    analysis["example"]["matrices"][0]["attention"][0] = value[0]
                (run / "analysis.json").write_text(json.dumps(analysis))
                self.assertRegex(self.refused("run"), r"analysis\.json: '(shape\.layers|example\.matrices\[0\]\.attention\[0\]\[0\])' must be")
        (run / "analysis.json").write_text(whole["analysis.json"])
        self.assertEqual(len(self.report("run")["runs"]), 1)
        self.assertIn("nothing", self.refused("nothing"))

    def test_examples_can_be_left_out(self):
        fixtures.run_folder(self.root / "run", tokens=["secret"] * 4)
        self.assertIn("secret", self.run_report("run", "--json").stdout)
        done = self.run_report("run", "--no-example", "-o", "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("secret", (self.root / "page.html").read_text())

    def test_wrong_usage(self):
        self.assertIn("name run folders, --experiments, or both", self.refused(status=2))
        self.assertIn("--experiments", self.refused("run", "--markdown", "x.md", status=2))
        fixtures.experiments(self.root / "experiments")
        self.assertIn("tiers are recipe, small", self.refused("--experiments", "--tier", "huge", status=2))
        self.assertIn("no experiments in elsewhere", self.refused("--experiments", "elsewhere", status=2))


if __name__ == "__main__":
    unittest.main()
