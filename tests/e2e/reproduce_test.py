"""hkt reproduce with the real program: killed and continued, stopped, and never run twice."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
BASE = {"task": "listops", "preset": "tiny", "d_model": 16, "d_ff": 16, "layers": 1, "batch": 4, "steps": 120,
        "eval_every": 60, "save_every": 10, "log_every": 5}
FILES = {
    "_all": {"config": BASE},
    "hkt": {"row": "HKT", "group": "smoke", "base": "_all", "seeds": [1, 2], "config": {"model": "hkt", "levels": 2}},
    "mha": {"row": "MHA", "group": "smoke", "base": "_all", "seeds": [1], "config": {"model": "mha"}},
}
RUNS = ["hkt-s1", "hkt-s2", "mha-s1"]


def make_tier(root):
    folder = root / "experiments" / "tiny"
    folder.mkdir(parents=True)
    for name, document in FILES.items():
        (folder / f"{name}.json").write_text(json.dumps(document))


def start(root, *arguments):
    return subprocess.Popen([PROGRAM, "reproduce", "--tier", "tiny", *arguments], cwd=root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def reproduce(root, *arguments):
    process = start(root, *arguments)
    out, errors = process.communicate(timeout=240)
    return process.returncode, out, errors


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def steps(root):
    """Steps in the metrics of every run, whole lines only."""
    found = {}
    for run in RUNS:
        path = root / "runs" / "experiments" / "tiny" / run / "metrics.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        found[run] = max((json.loads(line)["step"] for line in lines), default=0)
    return found


def results(root):
    """The results without what a clock or the memory says."""
    found = {}
    for path in (root / "experiments" / "results" / "tiny").glob("*.json"):
        document = json.loads(path.read_text())
        del document["time"]
        document["curve"]["validation"] = [row[:3] for row in document["curve"]["validation"]]
        found[path.stem] = document
    return found


class ReproduceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_reproduce_test_"))
        cls.straight = cls.root / "straight"
        make_tier(cls.straight)
        status, out, errors = reproduce(cls.straight, "--json")
        assert status == 0, errors
        cls.document, cls.errors = json.loads(out), errors

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def test_results_hold_what_the_table_needs(self):
        self.assertEqual([row["state"] for row in self.document["runs"]], ["done"] * 3)
        found = results(self.straight)
        self.assertEqual(sorted(found), RUNS)
        hkt, mha = found["hkt-s1"], found["mha-s1"]
        self.assertEqual([point[0] for point in hkt["curve"]["validation"]], [60, 120])
        self.assertEqual(hkt["sizes"], {"train": 20000, "validation": 1000, "test": 2000})
        self.assertEqual(sum(row["examples"] for row in hkt["by_depth"]), 2000)
        self.assertEqual(sum(row["correct"] for row in hkt["by_operator"]), round(2000 * hkt["test"]["accuracy"]))
        self.assertEqual(len(hkt["analysis"]["heads"]), 2)
        self.assertNotIn("analysis", mha)
        raw = json.loads((self.straight / "experiments/results/tiny/hkt-s1.json").read_text())
        self.assertGreater(raw["time"]["cpu_seconds"], 0)
        self.assertLess((self.straight / "experiments/results/tiny/hkt-s1.json").stat().st_size, 20_000)
        self.assertNotIn(str(self.root), json.dumps(raw))  # nothing of this machine's folders

    def test_a_second_call_runs_nothing(self):
        before = {p: p.stat().st_mtime_ns for p in self.straight.rglob("*") if p.is_file()}
        status, _, errors = reproduce(self.straight)
        self.assertEqual(status, 0, errors)
        self.assertIn("nothing to do", errors)
        self.assertEqual({p: p.stat().st_mtime_ns for p in self.straight.rglob("*") if p.is_file()}, before)

    def test_sigkills_at_any_moment_change_nothing(self):
        root = self.root / "killed"
        make_tier(root)
        rng, kills = random.Random(3), 0
        for kill in range(9):
            process = start(root)
            deadline, before = time.monotonic() + 60, sum(steps(root).values())
            moment = before + rng.randint(1, 50)
            while process.poll() is None and sum(steps(root).values()) < moment and time.monotonic() < deadline:
                if before >= 360:  # trained: in a test, an analysis, the collection
                    time.sleep(rng.uniform(0, 2))
                    break
                time.sleep(0.005)
            # Every other time the trainings go with their parent; else they are told by the system to save and leave.
            victims = children(process.pid) if kill % 2 else []
            process.kill()
            for victim in victims:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.communicate()
            kills += process.returncode == -signal.SIGKILL
            if process.returncode == 0:
                break
        status, _, errors = reproduce(root)
        self.assertEqual(status, 0, errors)
        self.assertGreaterEqual(kills, 5)
        self.assertEqual(results(root), results(self.straight))
        self.assertFalse([p for p in root.rglob("*") if ".tmp-" in p.name])
        print(f"killed {kills} times")

    def test_sigint_lets_the_trainings_save(self):
        root = self.root / "stopped"
        make_tier(root)
        (root / "experiments/tiny/_all.json").write_text(
            json.dumps({"config": dict(BASE, steps=100_000, save_every=0, eval_every=0)}))
        process = start(root)
        deadline = time.monotonic() + 60
        while min(sorted(steps(root).values())[1:]) < 10 and time.monotonic() < deadline:  # two are at work
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
        self.assertIn("training stopped", errors)
        states = list(root.rglob("state.safetensors"))
        self.assertEqual(len(states), 2)
        self.assertFalse((root / "experiments" / "results").exists())

    def test_another_configuration_and_failures(self):
        root = self.root / "other"
        shutil.copytree(self.straight, root)
        file = root / "experiments/tiny/mha.json"
        file.write_text(json.dumps(dict(FILES["mha"], config={"model": "mha", "lr": 0.002})))
        status, out, errors = reproduce(root, "--json")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("mha-s1.json: lr is 0.001 there, 0.002 in the experiment", errors)
        # One that fails, here as its weights are damaged, is told with the end of its log; the others go on.
        file.write_text(json.dumps(FILES["mha"]))
        for run in ("hkt-s1", "mha-s1"):
            (root / f"experiments/results/tiny/{run}.json").unlink()
        weights = root / "runs/experiments/tiny/mha-s1/model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        status, _, errors = reproduce(root)
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"mha-s1: failed: test ended with exit status 1; the end of .*mha-s1.log:")
        self.assertIn("hkt: error: 1 of 3 runs failed: mha-s1", errors)
        self.assertEqual(sorted(results(root)), ["hkt-s1", "hkt-s2"])

    def test_wrong_usage(self):
        for arguments, message in ((["--tier", "no"], "tiers are tiny"), (["--tier", "tiny", "--only", "no"], "it has hkt, mha"),
                                   (["--tier", "tiny", "--jobs", "0"], "--jobs is 0"), (["--tier", "tiny", "--threads", "-1"], "threads")):
            done = subprocess.run([PROGRAM, "reproduce", *arguments], cwd=self.straight, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(message, done.stderr)
        listed = subprocess.run([PROGRAM, "reproduce", "--tier", "tiny", "--list"], cwd=self.straight, capture_output=True, text=True)
        self.assertEqual(listed.stdout.count("done"), 3, listed.stderr)


if __name__ == "__main__":
    unittest.main()
