"""Event files as TensorBoard itself reads them (make check; scripts/check_tensorboard.sh installs it)."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tensorboard.backend.event_processing import directory_loader, event_accumulator, event_file_loader
from tensorboard.util import tensor_util

PROGRAM = os.environ["HKT_PROGRAM"]
FLAGS = ["--preset", "tiny", "--d-model", "16", "--d-ff", "16", "--layers", "2", "--levels", "2", "--batch", "4",
         "--steps", "120", "--save-every", "30", "--eval-every", "20", "--log-every", "1", "--threads", "1", "--quiet"]


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class TensorboardCheck(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_tensorboard_"))
        self.run_folder = self.root / "run"

    def tearDown(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def read(self):
        accumulator = event_accumulator.EventAccumulator(str(self.run_folder), size_guidance={event_accumulator.SCALARS: 0})
        accumulator.Reload()
        return accumulator

    def curve(self, accumulator, tag):
        # Simple values arrive as scalars or, after TensorBoard's own compatibility layer, as tensors of one number.
        if tag in accumulator.Tags()["scalars"]:
            return [(event.step, event.value) for event in accumulator.Scalars(tag)]
        return [(event.step, tensor_util.make_ndarray(event.tensor_proto).item()) for event in accumulator.Tensors(tag)]

    def assert_curves_are_the_metrics(self):
        accumulator, lines = self.read(), metrics(self.run_folder)
        train = [line for line in lines if line["kind"] == "train"]
        evaluations = [line for line in lines if line["kind"] == "eval"]
        expected = {
            "train/loss": [(line["step"], line["loss"]) for line in train],
            "train/lr": [(line["step"], line["lr"]) for line in train],
            "train/gradient_norm": [(line["step"], line["gradient_norm"]) for line in train],
            "train/tokens": [(line["step"], line["tokens"]) for line in train],
            "speed/tokens_per_second": [(line["step"], line["tokens_per_second"]) for line in train],
            "speed/flops_per_second": [(line["step"], line["flops_per_second"]) for line in train],
            "memory/peak_bytes": [(line["step"], line["peak_memory_bytes"]) for line in train],
            "lambda/block1_level0": [(line["step"], line["lambda"][1]["mean"][0]) for line in train],
            "gate_max/block0_level1": [(line["step"], line["gate"][0]["max"][1]) for line in train],
            "validation/accuracy": [(line["step"], line["accuracy"]) for line in evaluations],
            "validation/loss": [(line["step"], line["loss"]) for line in evaluations],
        }
        for tag, points in expected.items():
            with self.subTest(tag=tag):
                got = self.curve(accumulator, tag)
                self.assertEqual([step for step, _ in got], [step for step, _ in points])
                for (_, value), (_, number) in zip(got, points):
                    self.assertAlmostEqual(value, number, delta=1e-6 * abs(number))
        return accumulator

    def train(self, *more):
        return subprocess.Popen([PROGRAM, "train", *more, "--out", str(self.run_folder)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)

    def test_a_run_that_was_killed_and_stopped_has_every_step_once(self):
        for stop in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
            begun = self.run_folder.exists()
            before = max((line["step"] for line in metrics(self.run_folder)), default=0) if begun else 0
            process = self.train(*(["--resume", "--quiet"] if begun else FLAGS))
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                path = self.run_folder / "metrics.jsonl"
                if path.exists() and path.read_text().count('"kind":"train"') > before + 12:
                    break
                time.sleep(0.002)
            process.send_signal(stop)
            process.communicate(timeout=60)
        self.assertGreater(len(list(self.run_folder.glob("events.out.tfevents.*"))), 2)
        # What the killed sessions wrote beyond their saves is there twice in the files …
        raw = [event.step for path in sorted(self.run_folder.glob("events.*"))
               for event in event_file_loader.EventFileLoader(str(path)).Load() if event.HasField("summary")]
        self.finish(self.train("--resume", "--quiet"))
        self.assertGreater(len(raw), len(set(raw)))
        # … and once in TensorBoard.
        accumulator = self.assert_curves_are_the_metrics()
        steps = [step for step, _ in self.curve(accumulator, "train/loss")]
        self.assertEqual(steps, list(range(1, 121)))

    def test_a_file_that_was_cut_is_read_up_to_the_cut(self):
        self.finish(self.train(*FLAGS))
        path = self.run_folder / "events.out.tfevents.000001"
        whole = len(list(event_file_loader.EventFileLoader(str(path)).Load()))
        self.assertEqual(whole, 2 + 120 + 6)
        content = path.read_bytes()
        path.write_bytes(content[:len(content) // 2])
        part = len(list(event_file_loader.EventFileLoader(str(path)).Load()))
        self.assertGreater(part, whole // 3)
        self.assertLess(part, whole)

    def test_the_directory_loader_takes_the_sessions_in_order(self):
        self.finish(self.train(*FLAGS, "--max-time", "0.4"))
        self.finish(self.train("--resume", "--quiet"))
        loader = directory_loader.DirectoryLoader(str(self.run_folder), event_file_loader.TimestampedEventFileLoader)
        steps = [event.step for event in loader.Load() if event.HasField("summary")]
        self.assertEqual(len(steps), 120 + 6)


if __name__ == "__main__":
    unittest.main()
