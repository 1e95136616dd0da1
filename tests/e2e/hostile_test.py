"""Surroundings that fail: a disk that is full during a save, a run folder that may not be written, a clock that goes
back, files of a run that are damaged. The last good state survives, and one line says what to do.

As root the disk and the folder are real ones, mounted for the test. Who may not mount gets the next best thing, and the
test says so."""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
STEPS = 60
FLAGS = ["--preset", "tiny", "--d-model", "16", "--d-ff", "16", "--layers", "1", "--levels", "2", "--batch", "4",
         "--steps", str(STEPS), "--save-every", "5", "--eval-every", "20", "--log-every", "1", "--threads", "1", "--quiet"]
PLAIN = {"seconds", "cpu_seconds", "tokens_per_second", "flops_per_second", "peak_memory_bytes", "evaluation_seconds"}
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
/* Every question about the time of day is answered an hour earlier than the one before. */
static time_t now(void) { static time_t hours = 0; return 1000000000 - 3600 * hours++; }
int clock_gettime(clockid_t id, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  if (id != CLOCK_REALTIME) return real(id, t);
  t->tv_sec = now(); t->tv_nsec = 0;
  return 0;
}
int gettimeofday(struct timeval* t, void* zone) { t->tv_sec = now(); t->tv_usec = 0; return 0; }
time_t time(time_t* t) { time_t n = now(); if (t) *t = n; return n; }
"""


def hkt(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, **options)


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def plain(folder):
    return [{key: value for key, value in line.items() if key not in PLAIN} for line in lines(folder)]


def tensors(path):
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    return {name: content[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in json.loads(content[8:begin]).items() if name != "__metadata__"}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@contextlib.contextmanager
def mounted(*arguments, at):
    """Mounts and unmounts; yields whether it could."""
    at.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *arguments, str(at)], capture_output=True, text=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(at)], check=True)


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="hkt_hostile_test_"))
        cls.straight = cls.root / "straight"
        done = hkt("train", *FLAGS, "--out", str(cls.straight))
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.half = cls.root / "half"  # a run that was left somewhere in the middle
        first = subprocess.Popen([PROGRAM, "train", *FLAGS, "--out", str(cls.half)], stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        while first.poll() is None and not (cls.half / "model.safetensors").exists():
            pass
        first.terminate()
        first.communicate(timeout=60)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def assert_same_run(self, folder):
        self.assertEqual(plain(folder), plain(self.straight))
        for name in ("state.safetensors", "model.safetensors"):
            self.assertEqual(tensors(folder / name), tensors(self.straight / name), name)

    def assert_refused(self, done, *messages, status=1):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for message in messages:
            self.assertIn(message, done.stderr)

    def check_full_disk(self, run, fill, free, remedy):
        before = contents(run)
        with fill():
            done = hkt("train", "--resume", "--quiet", "--out", str(run), **free)
        self.assertEqual(done.returncode, 1, done.stdout)
        warnings = done.stderr.splitlines()
        self.assertTrue(any("state.safetensors" in line and "training goes on" in line for line in warnings), done.stderr)
        self.assertIn("hkt: error: cannot write", warnings[-1])
        self.assertIn(remedy, warnings[-1])
        self.assertIn("unchanged", warnings[-1])
        after = contents(run)
        for name in ("config.json", "state.safetensors", "model.safetensors"):
            self.assertEqual(after[name], before[name], name)
        self.assertFalse([name for name in after if ".tmp-" in name])
        done = hkt("train", "--resume", "--quiet", "--out", str(run))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_run(run)

    def test_a_disk_that_is_full_during_a_save(self):
        disk = self.root / "disk"
        with mounted("-t", "tmpfs", "-o", "size=2m", "tmpfs", at=disk) as real:
            run = disk / "run"
            shutil.copytree(self.half, run)
            if not real:
                print("no right to mount: a limit on the size of files stands in for the full disk")
                limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
                self.check_full_disk(run, contextlib.nullcontext, limit, "raise the limit on file sizes")
                return

            @contextlib.contextmanager
            def filled():
                filler = disk / "filler"
                descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
                with contextlib.suppress(OSError):
                    while True:
                        os.write(descriptor, b"x" * 4096)
                os.close(descriptor)
                yield
                filler.unlink()

            self.check_full_disk(run, filled, {}, "make room on that disk and run again")

    def test_a_limit_on_the_size_of_files(self):
        """Its signal, SIGXFSZ, is at its default here, which would end the program at the first byte too many."""
        run = self.root / "files-limited"
        shutil.copytree(self.half, run)
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
        self.check_full_disk(run, contextlib.nullcontext, limit, "raise the limit on file sizes")

    def test_a_run_folder_that_may_not_be_written(self):
        run = self.root / "locked"
        shutil.copytree(self.half, run)
        shutil.copy(self.straight / "model.safetensors", run)
        with mounted("--bind", str(run), at=run) as real:
            if real:
                subprocess.run(["mount", "-o", "remount,ro,bind", str(run)], check=True)
            elif os.geteuid() != 0:
                print("no right to mount: the folder's mode stands in for a read-only disk")
                run.chmod(0o555)
            else:
                self.skipTest("root that may not mount: nothing is read-only for it")
            before = contents(run)
            self.assert_refused(hkt("train", "--resume", "--quiet", "--out", str(run)),
                                "cannot write into the folder", str(run), "choose a place that you may use")
            self.assert_refused(hkt("train", *FLAGS, "--out", str(run / "new")), str(run), "choose a place")
            done = hkt("eval", str(run), "--split", "validation", "--threads", "1")
            self.assert_refused(done, "eval.json", "choose a place")
            self.assertIn("accuracy", done.stdout)
            done = hkt("predict", str(run), "--text", "5")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(contents(run), before)
            if not real:
                run.chmod(0o755)
        self.assertEqual(hkt("train", "--resume", "--quiet", "--out", str(run)).returncode, 0)

    def test_a_clock_that_goes_back(self):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
        library = self.root / "clock.so"
        (self.root / "clock.c").write_text(CLOCK)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(self.root / "clock.c"), "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        run = self.root / "clock"
        shutil.copytree(self.half, run)
        done = hkt("train", "--resume", "--quiet", "--json", "--out", str(run), env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_run(run)
        seconds = [line["seconds"] for line in lines(run)]
        self.assertEqual(seconds, sorted(seconds))
        self.assertGreater(seconds[0], 0)
        self.assertLess(seconds[-1], 120)
        self.assertTrue(all(line["tokens_per_second"] > 0 for line in lines(run) if "tokens_per_second" in line))
        self.assertGreater(json.loads(done.stdout)["seconds"], 0)
        # The clock did go back, and within the session the events' times do not.
        times = self.event_times(run / "events.out.tfevents.000002")
        self.assertLess(times[0], 1_000_000_001)
        self.assertEqual(times, sorted(times))
        self.assertEqual(hkt("eval", str(run), "--split", "validation", env=environment).returncode, 0)
        # A limit of time is one of time that passes.
        limited = self.root / "limited"
        done = hkt("train", *FLAGS, "--max-time", "100", "--out", str(limited), env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_run(limited)

    def event_times(self, path):
        content, times = path.read_bytes(), []
        while content:
            length = int.from_bytes(content[:8], "little")
            self.assertEqual(content[12], 1 << 3 | 1)  # field 1, a double
            times.append(struct.unpack_from("<d", content, 13)[0])
            content = content[12 + length + 4:]
        return times

    def test_damaged_files_through_the_program(self):
        for name, resume, other in (("config.json", "config.json", "config.json"),
                                    ("state.safetensors", "state.safetensors", None),
                                    ("model.safetensors", None, "model.safetensors"),
                                    ("metrics.jsonl", None, None),
                                    ("events.out.tfevents.000001", None, None)):
            with self.subTest(name=name):
                run = self.root / ("cut-" + name)
                shutil.copytree(self.half, run)
                path = run / name
                path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
                for command in (["eval", str(run), "--split", "validation"], ["predict", str(run), "--text", "5"]):
                    done = hkt(*command)
                    if other:
                        self.assert_refused(done, str(run / other), status=done.returncode)
                        self.assertIn(done.returncode, (1, 2))
                    else:
                        self.assertEqual(done.returncode, 0, done.stderr)
                done = hkt("train", "--resume", "--quiet", "--out", str(run))
                if resume:
                    self.assert_refused(done, str(run / resume))
                else:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(tensors(run / "state.safetensors"), tensors(self.straight / "state.safetensors"))


if __name__ == "__main__":
    unittest.main()
