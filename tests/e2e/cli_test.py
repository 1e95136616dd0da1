"""What the program says to wrong input, and what it does before and after the jobs: one line, the right status, no crash."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
TINY = ["--preset", "tiny", "--d-model", "8", "--heads", "2", "--d-ff", "8", "--layers", "1", "--batch", "4",
        "--eval-every", "0", "--threads", "1", "--quiet"]


def hkt(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, **options)


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_cli_test_"))
        cls.run_folder = str(cls.root / "run")
        done = hkt("train", *TINY, "--steps", "2", "--out", cls.run_folder)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def assert_refused(self, done, status, *messages):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for message in messages:
            self.assertIn(message, done.stderr)

    def test_unknown_command(self):
        self.assert_refused(hkt("foo"), 2, "unknown command 'foo'")
        self.assert_refused(hkt(), 2, "subcommand")

    def test_more_threads_than_a_machine_can_run(self):
        for command in (["eval", self.run_folder], ["predict", self.run_folder, "--text", "5"]):
            for threads in ("100000", "4294967297", "-1"):
                self.assert_refused(hkt(*command, "--threads", threads), 2, "threads is " + threads)
        self.assert_refused(hkt("eval", self.run_folder, "--batch", "9223372036854775807"), 2, "--batch is")

    def test_a_model_larger_than_the_machine(self):
        out = str(self.root / "huge")
        for where in (["--dry-run"], ["--out", out]):
            done = hkt("train", "--preset", "tiny", "--d-model", "65536", "--layers", "1024", *where)
            self.assert_refused(done, 1, "parameters needs", "lower --d-model")
        self.assertFalse(os.path.exists(out))
        self.assert_refused(hkt("train", "--dry-run", "--resume", "--out", self.run_folder), 2, "exclude each other")

    def test_messages_stay_one_short_line(self):
        self.assert_refused(hkt("eval", "no\nsuch"), 1, r"no\x0asuch")
        done = hkt("predict", self.run_folder, "--text", "\x1b[2J" + "x" * 100_000)
        self.assert_refused(done, 1, r"\x1b")
        self.assertLess(len(done.stderr), 3000)

    def test_a_closed_output_is_an_error(self):
        for arguments in (["info"], ["--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assert_refused(done, 1, "could not write to standard output")

    def test_a_failed_job_prints_no_document(self):
        self.assertEqual(hkt("eval", str(self.root / "nothing"), "--json").stdout, "")
        self.assertEqual(json.loads(hkt("info", "--json").stdout)["version"].count("."), 2)

    def test_data_are_found_from_another_folder(self):
        self.assertEqual(hkt("data", "make", "--task", "listops", "--preset", "tiny", "--out", "made", cwd=self.root).returncode, 0)
        out = str(self.root / "elsewhere")
        done = hkt("train", *TINY, "--steps", "2", "--data", "made", "--out", out, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(hkt("eval", out, cwd="/").returncode, 0)

    def test_an_evaluation_is_shown_where_it_cannot_be_written(self):
        copy = self.root / "unwritable"
        shutil.copytree(self.run_folder, copy)
        (copy / "eval.json").mkdir()  # refuses to be replaced, for root as well
        done = hkt("eval", str(copy), "--split", "validation")
        self.assert_refused(done, 1, "eval.json")
        self.assertIn("accuracy", done.stdout)

    def test_a_closed_terminal_saves(self):
        out = str(self.root / "hangup")
        process = subprocess.Popen([PROGRAM, "train", *TINY, "--steps", "100000", "--save-every", "0", "--log-every", "1", "--out", out],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not os.path.exists(os.path.join(out, "metrics.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.01)
        # The program started itself anew without glibc's thread cache, once.
        environment = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().decode()
        self.assertEqual(environment.count("glibc.malloc.tcache_count=0"), 1)
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGHUP, errors)
        self.assertTrue(os.path.exists(os.path.join(out, "state.safetensors")))


if __name__ == "__main__":
    unittest.main()
