"""hkt predict as a filter: streams, files, formats, and what it says when something is wrong."""

import contextlib
import csv
import io
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
SMALL = ["--preset", "tiny", "--d-model", "8", "--d-ff", "8", "--layers", "1", "--levels", "1", "--batch", "4",
         "--eval-every", "0", "--threads", "1"]
TEXTS = "[MAX 2 9 [MIN 4 7 ] 0 ]\n\n5\r\n[SM 1 2 ]"


def hkt(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, **options)


class PredictTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_predict_test_"))
        cls.run_folder = str(cls.root / "run")
        done = hkt("train", *SMALL, "--steps", "2", "--quiet", "--out", cls.run_folder)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.file = str(cls.root / "texts")
        pathlib.Path(cls.file).write_bytes(TEXTS.encode())

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def predict(self, *arguments, **options):
        return hkt("predict", self.run_folder, "--threads", "1", *arguments, **options)

    def good(self, *arguments, **options):
        done = self.predict(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_refused(self, done, status, *messages):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for message in messages:
            self.assertIn(message, done.stderr)

    def test_all_formats_say_the_same(self):
        plain = self.good(self.file).split("\n")
        self.assertEqual([len(line.split("\t")) for line in plain], [2, 1, 2, 2, 1])
        rows = list(csv.DictReader(io.StringIO(self.good(self.file, "--format", "csv"))))
        lines = [json.loads(line) for line in self.good(self.file, "--format", "jsonl").splitlines()]
        document = json.loads(self.good(self.file, "--json"))
        self.assertEqual([row["line"] for row in rows], ["1", "2", "3", "4"])
        self.assertEqual([line["line"] for line in lines], [1, 2, 3, 4])
        for text, row, line, entry in zip(plain, rows, lines, document["predictions"]):
            if entry["label"] is None:
                self.assertEqual((text, row["label"], line["label"]), ("", "", None))
                continue
            self.assertEqual(text, f"{entry['label']}\t{entry['probability']:.4f}")
            self.assertEqual(row["label"], entry["label"])
            self.assertEqual(line["probabilities"], entry["probabilities"])
            for name, value in zip(document["classes"], entry["probabilities"]):
                self.assertAlmostEqual(float(row["p_" + name]), value, places=8)
        self.assertIn("1 of 4 lines are blank", self.predict(self.file).stderr)
        self.assertEqual(self.good("-", input=TEXTS), self.good(self.file))

    def test_a_line_is_answered_before_the_next_one_comes(self):
        process = subprocess.Popen([PROGRAM, "predict", self.run_folder, "-"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            for text in (b"5\n", b"\n", b"[MAX 1 2 ]\n"):
                process.stdin.write(text)
                process.stdin.flush()
                self.assertTrue(select.select([process.stdout], [], [], 60)[0], "no answer while stdin is open")
                self.assertEqual(b"\t" in process.stdout.readline(), text != b"\n")
            process.stdin.close()
            self.assertEqual(process.stdout.read(), b"")
            self.assertEqual(process.wait(60), 0)
        finally:
            process.kill()
            process.stdout.close()
            process.stderr.close()

    def test_ten_thousand_lines_in_order(self):
        lines = [f"[MAX {i % 10} {i // 7 % 10}" + " 0" * (i * i % 13) + " ]" for i in range(10_000)]
        rows = self.good("-", input="\n".join(lines)).splitlines()
        self.assertEqual(len(rows), len(lines))
        some = range(0, 10_000, 997)
        again = self.good("-", input="\n".join(lines[i] for i in some)).splitlines()
        for i, row in zip(some, again):  # rounding may differ with the batch
            self.assertAlmostEqual(float(rows[i].split("\t")[1]), float(row.split("\t")[1]), delta=2e-4)

    def test_memory_does_not_grow_with_the_file(self):
        peaks = []
        for lines in (4_000, 40_000):  # two windows, and twenty
            path = self.root / "large"
            path.write_text(("[MAX " + "3 " * 90 + "]\n") * lines)
            process = subprocess.Popen([PROGRAM, "predict", self.run_folder, str(path), "--threads", "1", "-o", "/dev/null"])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            peaks.append(usage.ru_maxrss / 1024)
        print(f"peak MiB: {peaks}")
        self.assertLess(peaks[1], peaks[0] + 6)  # the larger file has 6.7 MiB more

    def test_an_output_file_is_whole_or_what_it_was(self):
        out = self.root / "out.csv"
        self.assertEqual(self.good(self.file, "--format", "csv", "-o", str(out)), "")
        self.assertEqual(out.read_text(), self.good(self.file, "--format", "csv"))
        before = out.read_text()
        done = self.predict("-", "-o", str(out), input="5\n[MAX\n")
        self.assert_refused(done, 1, "standard input:2: ")
        self.assertEqual(out.read_text(), before)
        self.assertEqual([name for name in os.listdir(self.root) if ".tmp-" in name], [])
        self.assert_refused(self.predict(self.file, "-o", str(self.root / "none" / "out")), 1, "check the path")
        self.assertEqual(self.good(self.file, "-o", "/dev/stdout"), self.good(self.file))

    def test_a_line_that_cannot_be_read_is_named_and_those_before_are_answered(self):
        path = self.root / "bad"
        path.write_text("5\n\n6\n[MAX 1\n7\n")
        done = self.predict(str(path))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}:4: ", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 3)
        done = self.predict(str(path), "--json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        path.write_bytes(b"\x00\xff\xfe\n")
        self.assert_refused(self.predict(str(path)), 1, f"{path}:1: ")

    def test_streams_by_name_and_what_is_none(self):
        expected = self.good(self.file)
        for path in ("/dev/stdin", "-"):
            self.assertEqual(self.good(path, input=TEXTS), expected)
        fifo = str(self.root / "fifo")
        os.mkfifo(fifo)
        process = subprocess.Popen([PROGRAM, "predict", self.run_folder, fifo, "--threads", "1"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        pathlib.Path(fifo).write_text(TEXTS)
        self.assertEqual(process.communicate(timeout=60)[0].decode(), expected)
        for path in (str(self.root), "/dev/zero"):
            self.assert_refused(self.predict(path), 1, path + ": neither a plain file nor a pipe but a ")
        marked = self.root / "marked"
        marked.write_bytes(b"\xef\xbb\xbf" + TEXTS.encode())
        self.assertEqual(self.good(str(marked)), expected)

    def test_a_signal_leaves_nothing_half_written(self):
        folder = self.root / "signalled"
        folder.mkdir()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = subprocess.Popen([PROGRAM, "predict", self.run_folder, "-", "-o", str(folder / "out")],
                                       stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 60
            while not os.listdir(folder) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertTrue(os.listdir(folder)[0].startswith("out.tmp-"))
            process.send_signal(number)
            self.assertEqual(process.wait(60), 128 + number)
            self.assertEqual(os.listdir(folder), [])
            process.stdin.close()
            process.stderr.close()

    def test_where_output_goes(self):
        expected = self.good(self.file)
        self.assertEqual(self.good(self.file, "-o", "-"), expected)
        self.assert_refused(self.predict(self.file, "-o", ""), 2, "--output is empty")
        self.assert_refused(self.predict(self.file, "--output="), 2, "--output= has no value")
        self.assert_refused(self.predict(self.file, "-o", str(self.root)), 1, "name a file")

    def test_wrong_usage(self):
        for arguments, message in {("--text", " "): "--text is blank",
                                   (): "--text",
                                   ("--text", "5", self.file): "either --text",
                                   (self.file, "--format", "xml"): "text|csv|jsonl|json",
                                   (self.file, "--format", "csv", "--json"): "exclude each other",
                                   (self.file, "--batch", "0"): "--batch is 0"}.items():
            with self.subTest(arguments=arguments):
                self.assert_refused(self.predict(*arguments), 2, message)
        self.assert_refused(self.predict(str(self.root / "none")), 1, "none", "check the path")
        self.assert_refused(self.predict("--text", "[MAX"), 1, "--text: ")

    def test_a_closed_pipe_is_quiet_and_a_full_disk_is_not(self):
        for ignore in (False, True):  # whatever a parent did to the signal
            process = subprocess.Popen([PROGRAM, "predict", self.run_folder, "-"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=not ignore)
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"5\n" * 100_000)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(60), -signal.SIGPIPE)
            process.stderr.close()
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "predict", self.run_folder, "--text", "5"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        self.assert_refused(done, 1, "cannot write standard output", "make room")

    def test_training_whose_progress_nobody_reads_saves_and_leaves(self):
        out = str(self.root / "piped")
        process = subprocess.Popen([PROGRAM, "train", *SMALL, "--steps", "100000", "--log-every", "1", "--save-every", "0",
                                    "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        process.stderr.readline()
        process.stderr.close()
        self.assertEqual(process.wait(60), 128 + signal.SIGPIPE)
        self.assertTrue(os.path.exists(os.path.join(out, "state.safetensors")))


if __name__ == "__main__":
    unittest.main()
