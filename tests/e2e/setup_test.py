"""The set-up says one clear thing where it may not or cannot install, and is quick where nothing is missing."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
TOOLS = ["sh", "dirname", "cat", "echo", "head", "tail", "mktemp", "rm", "tr"]
COMPILERS = ["g++", "cmake", "ninja", "git", "ccache", "python3"]


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            os.symlink(shutil.which(tool), self.bin / tool)
        # A copy that sees no system headers: every library is missing.
        self.scripts = self.root / "repo/scripts"
        shutil.copytree(SOURCE / "scripts", self.scripts)
        setup = self.scripts / "setup.sh"
        setup.write_text(setup.read_text().replace("/usr/include /usr/local/include", str(self.root / "include")))

    def command(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run_setup(self, *arguments, **environment):
        return subprocess.run(["sh", self.scripts / "setup.sh", *arguments], capture_output=True, text=True, timeout=60,
                              env={"PATH": str(self.bin), **environment})

    def test_elsewhere_than_on_debian(self):
        done = self.run_setup("--tests")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no Debian system", done.stderr)
        for package in ["g++", "libcli11-dev", "libarchive-dev", "libboost-dev", "libgtest-dev", "python3-venv"]:
            self.assertIn(package, done.stderr)

    def test_without_root_it_prints_the_line_to_run(self):
        self.command("apt-get", f"touch {self.root}/called")
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")  # asks for a password
        for tool in COMPILERS:
            if not (self.bin / tool).exists():
                self.command(tool, "exit 0")
        done = self.run_setup()
        self.assertEqual(done.returncode, 1)
        self.assertIn("sudo apt-get update && sudo apt-get install -y --no-install-recommends libcli11-dev nlohmann-json3-dev "
                      "libarchive-dev zlib1g-dev libxxhash-dev libhwy-dev libboost-dev\n", done.stderr)
        self.assertFalse((self.root / "called").exists())

    def test_as_root_a_failing_install_shows_why(self):
        self.command("apt-get", "echo 'E: no route to the mirror' >&2; exit 100")
        self.command("id", "echo 0")
        self.command("env", 'shift; exec "$@"')
        done = self.run_setup()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no route to the mirror", done.stderr)
        self.assertIn("could not be installed", done.stderr)

    def test_without_a_browser_all_else_goes_on(self):
        for header in ["CLI/CLI.hpp", "nlohmann/json.hpp", "archive.h", "zlib.h", "xxhash.h", "hwy/highway.h", "boost/math/distributions/students_t.hpp",
                       "gtest/gtest.h", "gmock/gmock.h", "benchmark/benchmark.h"]:
            path = self.root / "include" / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        for tool in COMPILERS:
            self.command(tool, "exit 0")
        self.command("apt-get", "exit 0")
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        done = self.run_setup("--tests")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without chromium nodejs npm the tests of the report's page will not run", done.stderr)
        self.assertIn("sudo apt-get install -y --no-install-recommends chromium nodejs npm\n", done.stderr)
        self.command("id", "echo 0")  # as root, but the mirror lacks them
        self.command("apt-get", "echo 'E: Unable to locate package chromium' >&2; exit 100")
        self.command("env", 'shift; exec "$@"')
        done = self.run_setup("--tests")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Unable to locate package chromium", done.stderr)
        self.assertIn("will not run", done.stderr)
        self.assertNotIn("will not run", self.run_setup().stderr)  # the program alone needs none of it

    def test_nothing_missing_is_quick_and_quiet(self):
        start = time.monotonic()
        done = subprocess.run(["sh", SOURCE / "scripts/setup.sh", "--tests"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertLess(time.monotonic() - start, 10)

    def find_torch(self, **environment):
        return subprocess.run(["sh", SOURCE / "scripts/find_torch.sh", "--describe"], capture_output=True, text=True,
                              timeout=60, env={**os.environ, **environment})

    def python_with_torch(self, version):
        """A python3 that sees a folder torch with this version, and a made-up one only."""
        package = self.root / f"site-{version}" / "torch"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "version.py").write_text(f"__version__ = '{version}'\n")
        python = shutil.which("python3")
        self.command(f"python {version}",  # a blank in a path is no separator
                      f'shift; exec {python} -I -c "import sys; sys.path[:0] = [\'{package.parent}\']; '
                     f'sys.argv = sys.argv[1:]; exec(sys.stdin.read())" "$@"')
        return str(self.bin / f"python {version}")

    def test_the_named_python_is_taken(self):
        done = self.find_torch(TORCH_PYTHON=self.python_with_torch("2.9.1+cu128"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[1], "2.9.1+cu128")
        self.assertTrue(done.stdout.splitlines()[2].endswith("/torch"))

    def test_an_old_or_absent_pytorch_is_refused(self):
        for python in [self.python_with_torch("2.8.0"), "/nonexistent/python"]:
            done = self.find_torch(TORCH_PYTHON=python)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "")
            self.assertIn("has no PyTorch 2.9 or newer", done.stderr)
        self.assertEqual(self.find_torch(TORCH_PYTHON=self.python_with_torch("2.10.0")).returncode, 0)


if __name__ == "__main__":
    unittest.main()
