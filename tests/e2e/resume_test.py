"""Runs that are killed, stopped and continued, through the program itself."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
STEPS, SAVE_EVERY = 160, 5
# Small enough for two seconds of training, with everything that must survive: dropout, shuffling, accumulation.
FLAGS = ["--preset", "tiny", "--d-model", "16", "--d-ff", "16", "--layers", "1", "--levels", "2", "--batch", "4",
         "--accumulate", "2", "--steps", str(STEPS), "--save-every", str(SAVE_EVERY), "--eval-every", "60",
         "--log-every", "1", "--threads", "1", "--quiet"]
PLAIN = {"seconds", "cpu_seconds", "tokens_per_second", "flops_per_second", "peak_memory_bytes", "evaluation_seconds"}


def hkt(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, **options)


def metrics(folder):
    """All lines without the wall times; a last line that is cut, or still being written, is left out."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        # At once: by lines, the second half of one that is being written would come as a line of its own.
        whole = file.read().split("\n")[:-1]
    return [{key: value for key, value in json.loads(line).items() if key not in PLAIN} for line in whole]


def state_step(folder):
    """The step that the saved state stands at; 0 before the first save."""
    path = os.path.join(folder, "state.safetensors")
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return json.loads(header["__metadata__"]["progress"])["step"]


def tensors(path):
    """Name -> bytes."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {name: data[entry["data_offsets"][0]:entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


class ResumeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="hkt_resume_test_")
        cls.straight = os.path.join(cls.root, "straight")
        done = hkt("train", *FLAGS, "--out", cls.straight)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def start(self, folder):
        resume = os.path.exists(os.path.join(folder, "config.json"))
        arguments = ["--resume", "--quiet"] if resume else FLAGS
        return subprocess.Popen([PROGRAM, "train", *arguments, "--out", folder], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def wait_for_step(self, process, folder, step):
        deadline = time.monotonic() + 60
        path = os.path.join(folder, "metrics.jsonl")
        while process.poll() is None and time.monotonic() < deadline:
            if os.path.exists(path) and any(line["step"] >= step for line in metrics(folder)):
                return
            time.sleep(0.002)

    def assert_same_run(self, folder):
        self.assertEqual(metrics(folder), metrics(self.straight))
        for name in ("state.safetensors", "model.safetensors"):
            self.assertEqual(tensors(os.path.join(folder, name)), tensors(os.path.join(self.straight, name)), name)

    def test_ten_sigkills_lose_no_more_than_the_steps_since_the_last_save(self):
        folder = os.path.join(self.root, "killed")
        rng = random.Random(7)
        kills, restarts, lost = 0, 0, []
        while kills < 10:
            begin_step = state_step(folder)
            process = self.start(folder)
            # A random moment within the next steps: in one of them, in a save, in an evaluation.
            self.wait_for_step(process, folder, begin_step + rng.randint(1, STEPS // 13))
            time.sleep(rng.uniform(0, 0.02))
            process.kill()
            process.communicate()
            if process.returncode == 0:  # a busy machine: the run was done before it was killed; from the start
                shutil.rmtree(folder)
                restarts += 1
                self.assertLess(restarts, 10)
                continue
            self.assertEqual(process.returncode, -signal.SIGKILL)
            kills += 1
            reached = max(line["step"] for line in metrics(folder))
            saved = state_step(folder)
            lost.append(reached - saved)
            self.assertLessEqual(lost[-1], SAVE_EVERY)
        process = self.start(folder)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assert_same_run(folder)
        self.assertFalse([name for name in os.listdir(folder) if ".tmp-" in name])
        print(f"steps lost to ten kills: {lost}")

    def test_sigterm_saves_and_says_how_to_go_on(self):
        folder = os.path.join(self.root, "terminated")
        process = self.start(folder)
        self.wait_for_step(process, folder, 13)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertIn("hkt train --resume --out " + folder, out)
        self.assertEqual(state_step(folder), metrics(folder)[-1]["step"])  # nothing is lost
        self.assertIn("no weights in", hkt("eval", folder, "--split", "validation").stderr)
        process = self.start(folder)
        self.wait_for_step(process, folder, 40)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        process = self.start(folder)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)
        self.assert_same_run(folder)

    def test_time_limit_ends_well_and_the_run_goes_on(self):
        folder = os.path.join(self.root, "limited")
        done = hkt("train", *FLAGS, "--max-time", "0.3", "--out", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("time is up", done.stdout)
        self.assertGreater(state_step(folder), 0)
        done = hkt("train", "--resume", "--quiet", "--json", "--out", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["end"], "finished")
        self.assert_same_run(folder)

    def test_a_finished_run_says_so(self):
        done = hkt("train", "--resume", "--out", self.straight)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("this run is finished", done.stdout)

    def test_wrong_usage_is_status_two_and_one_line(self):
        unknown = os.path.join(self.root, "unknown.json")
        with open(unknown, "w", encoding="utf-8") as file:
            json.dump({"lr": "fast", "eval-every": 3, "levels": 2}, file)
        out = os.path.join(self.root, "never")
        cases = {
            ("train", "--resume", "--out", out): "nothing to resume",
            ("train", "--resume"): "--resume needs",
            ("train", "--out", self.straight): "add --resume",
            ("train", "--resume", "--out", self.straight, "--lr", "5", "--batch", "9"): "lr is 5",
            ("train", "--no-such-flag", "--out", out): "no-such-flag",
            ("train", "--lr", "-1", "--out", out): "lr is -1",
            ("train", "--config", unknown, "--out", out): "did you mean 'eval_every'",
            ("eval", self.straight, "--split", "train"): "must be test or validation",
            ("predict", self.straight): "--text",
            ("eval",): "RUN",
        }
        for arguments, message in cases.items():
            with self.subTest(arguments=arguments):
                done = hkt(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse(os.path.exists(out))

    def test_failed_jobs_are_status_one(self):
        damaged = os.path.join(self.root, "damaged")
        shutil.copytree(self.straight, damaged)
        path = os.path.join(damaged, "model.safetensors")
        with open(path, "r+b") as file:
            file.seek(-5, os.SEEK_END)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        for arguments, message in {("eval", damaged, "--split", "validation"): "checksum does not agree",
                                   ("predict", damaged, "--text", "5"): "checksum does not agree",
                                   ("eval", self.root): "no run in",
                                   ("predict", self.straight, "--text", "[MAX"): "--text: "}.items():
            with self.subTest(arguments=arguments):
                done = hkt(*arguments)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_eval_and_predict_agree_in_text_and_json(self):
        done = hkt("eval", self.straight, "--split", "validation", "--threads", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        with open(os.path.join(self.straight, "eval.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), report)
        self.assertEqual(report["samples"], len(report["predicted"]))
        right = sum(a == b for a, b in zip(report["labels"], report["predicted"]))
        self.assertAlmostEqual(report["accuracy"], right / report["samples"])
        best = [line for line in metrics(self.straight) if line.get("best")][-1]
        self.assertAlmostEqual(report["accuracy"], best["accuracy"])
        self.assertAlmostEqual(report["loss"], best["loss"], places=5)
        texts = "[MAX 1 2 ]\n[SM 3 4 [MIN 1 2 ] ]\n7\n"
        lines = hkt("predict", self.straight, "-", input=texts).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        document = json.loads(hkt("predict", self.straight, "-", "--json", input=texts).stdout)
        for line, prediction in zip(lines, document["predictions"]):
            label, probability = line.split("\t")
            self.assertEqual(label, prediction["label"])
            self.assertAlmostEqual(float(probability), prediction["probability"], places=4)


if __name__ == "__main__":
    unittest.main()
