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

    def test_values_that_are_none(self):
        """Of every kind of option, in every way it is added: the flag, what was given, what it must be."""
        cases = {
            ("train", "--psd=maybe"): "--psd is 'maybe', must be true or false",
            ("train", "--no-psd=7"): "--no-psd is '7', must be true or false",
            ("train", "--resume=yes", "--out", "x"): "--resume is 'yes', must be true or false",
            ("info", "--json="): "--json is '', must be true or false",
            ("train", "--lr=abc"): "--lr is 'abc', must be a number",
            ("train", "--lr=1e999"): "--lr is '1e999', which is beyond",
            ("train", "--steps=1e3"): "--steps is '1e3', must be a whole number",
            ("train", "--steps=99999999999999999999"): "--steps is '99999999999999999999', which is beyond",
            ("train", "--seed=-1"): "seed is -1, must be at least 0",
            ("train", "--batch=1048577"): "batch is 1048577, must be at least 1 and at most 65536",
            ("train", "--d-ff=9999999"): "d_ff is 9999999, must be at least 1 and at most 1048576",
            ("train", "--resume", "--from-step", "-1", "--out", "x"): "--from-step is -1, must be",
            ("train", "--from-step", "x"): "--from-step is 'x', must be a whole number",
            ("eval", "x", "--batch", "0x10"): "--batch is '0x10', must be a whole number",
            ("data", "multiscale", "--seed=-1"): "--seed is '-1', must be a whole number from 0 on",
            ("data", "multiscale", "--rho", "half"): "--rho is 'half', must be a number",
            ("bench", "attention", "--seq-len", "x"): "--seq-len is 'x', must be a whole number",
            ("train", "--lr", "1", "--lr", "2"): "--lr is given twice",
            ("train", "--psd", "--no-psd"): "--no-psd and --psd exclude each other",
            ("predict", "x", "-o", "a", "--output", "b"): "--output and -o exclude each other",
            ("train", "--quiet", "--quiet"): "--quiet is given twice",
            ("train", "--out", ""): "--out is empty",
            ("train", "--out="): "--out= has no value",
            ("eval", ""): "RUN is empty",
            ("train", "--out", "-"): "--out is '-', and this cannot go to standard output; name a folder",
            ("data", "multiscale", "--out", "-"): "name a file",
        }
        empty = self.root / "empty"
        empty.mkdir()
        for arguments, message in cases.items():
            with self.subTest(arguments=arguments):
                self.assert_refused(hkt(*arguments, cwd=empty), 2, message)
        self.assertEqual(os.listdir(empty), [])
        # As a value of another option nothing of this is looked at; and these are right.
        self.assert_refused(hkt("predict", self.run_folder, "--text", "--psd=maybe"), 1, "--text: ")
        self.assertEqual(hkt("eval", self.run_folder, "--batch", "010", "--json=true").returncode, 0)
        self.assertNotEqual(hkt("info", "--json=false").stdout[0], "{")
        dry = json.loads(hkt("train", "--preset", "tiny", "--d-model", "8", "--layers", "1", "--batch", "2", "--dry-run", "--json",
                             "--psd=true", "--tensorboard=false").stdout)
        self.assertEqual((dry["config"]["psd"], dry["config"]["tensorboard"]), (True, False))

    def test_a_path_in_a_configuration_with_a_nul(self):
        path = self.root.parent / (self.root.name + ".json")
        path.write_text(json.dumps({"data": "/etc\0x"}))
        self.assert_refused(hkt("train", "--config", str(path)), 2, "data is", "without NUL")
        path.unlink()

    def test_a_configuration_that_is_no_plain_file(self):
        for path in (str(self.root), "/dev/zero"):
            self.assert_refused(hkt("train", "--config", path), 1, path + ": not a plain file but a ")

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
        for arguments in (["info"], ["--help"], ["eval", self.run_folder, "--split", "validation"]):
            done = subprocess.run(["/bin/bash", "-c", 'exec "$0" "$@" >&-', PROGRAM, *arguments], stderr=subprocess.PIPE, text=True,
                                  timeout=60)
            self.assert_refused(done, 1, "could not write to standard output")
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assert_refused(done, 1, "could not write to standard output")

    def test_closed_streams_are_not_the_files_that_are_opened(self):
        """What is printed would go into whatever file got the number of a closed stream."""
        out = self.root / "closed"
        command = 'exec "$0" "$@" <&- >&- 2>&-'
        done = subprocess.run(["/bin/bash", "-c", command, PROGRAM, "train", *TINY[:-1], "--steps", "3", "--log-every", "1",
                               "--save-every", "1", "--out", str(out)], timeout=60)
        self.assertEqual(done.returncode, 1)  # nobody could be told how it went
        self.assertEqual(hkt("train", "--resume", "--quiet", "--out", str(out)).returncode, 0)
        self.assertEqual(len((out / "metrics.jsonl").read_text().splitlines()), 5)
        self.assert_refused(subprocess.run(["/bin/bash", "-c", 'exec "$0" "$@" <&-', PROGRAM, "predict", self.run_folder, "-"],
                                           stderr=subprocess.PIPE, text=True, timeout=60), 1, "cannot read standard input")

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
        (copy / "eval.json").unlink(missing_ok=True)
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
