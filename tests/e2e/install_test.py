"""cmake --install, find_package(hkt) from a clean build folder, and the installed program."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["HKT_BUILD_DIR"])
LAUNCHER = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []


def run(*command, **env):
    """Runs it without the caller's TORCH_PYTHON; returns status and output."""
    environment = {k: v for k, v in os.environ.items() if k != "TORCH_PYTHON"} | env
    done = subprocess.run([str(c) for c in command], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hkt-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.prefix = cls.root / "prefix"
        status, output = run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        assert status == 0, output

    def configure(self, source, build, **env):
        return run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}", *LAUNCHER, **env)

    def project(self, name, files):
        for path, text in files.items():
            file = self.root / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        return self.root / name

    def test_example_builds_and_runs(self):
        build = self.root / "example"
        status, output = self.configure(SOURCE / "examples" / "cpp", build)
        self.assertEqual(status, 0, output)
        self.assertNotIn("Warning", output)
        status, output = run("cmake", "--build", build)
        self.assertEqual(status, 0, output)
        status, output = run(build / "example", OMP_NUM_THREADS="1")
        self.assertEqual(status, 0, output)
        self.assertIn("layer       [2, 100, 64]", output)
        self.assertIn("logits      [8, 2]", output)
        loss = float(output.split("loss")[1])
        self.assertTrue(0 < loss < 10, output)  # NaN fails, too

    def test_kernels_example_builds_and_runs(self):
        build = self.root / "kernels"
        status, output = self.configure(SOURCE / "examples" / "kernels", build)
        self.assertEqual(status, 0, output)
        status, output = run("cmake", "--build", build)
        self.assertEqual(status, 0, output)
        status, output = run(build / "example")
        self.assertEqual(status, 0, output)
        # Every value is 1/2, so every output is; the gradients of the values sum to those of the outputs.
        self.assertRegex(output, r"out 0.5 … (0.5|0.49999\d*|0.50000\d*)\n")
        self.assertLess(len((SOURCE / "examples" / "kernels" / "main.cc").read_text().splitlines()), 60)

    def test_expressivity_example_builds_and_runs(self):
        build = self.root / "expressivity"
        status, output = self.configure(SOURCE / "examples" / "expressivity", build)
        self.assertEqual(status, 0, output)
        status, output = run("cmake", "--build", build)
        self.assertEqual(status, 0, output)
        status, output = run(build / "example", OMP_NUM_THREADS="1")
        self.assertEqual(status, 0, output)
        distance = float(re.search(r"(\S+) from standard attention", output)[1])
        self.assertLess(distance, 1e-5)  # float32
        near, far = re.search(r"outputs 5 to 7 by (\S+) and later ones by (\S+)", output).groups()
        self.assertGreater(float(near), 0.01)
        self.assertLess(float(far), 1e-5)
        self.assertIn("of 3 -3 3 5:  0.000  1.500  -1.000  -1.500\n", output)
        self.assertIn("a c b -> 0.4444 (4/9),  c a b -> 0.3333 (1/3)\n", output)
        self.assertIn("near +1.000,  far -1.000\n", output)
        self.assertLess(len((SOURCE / "examples" / "expressivity" / "main.cc").read_text().splitlines()), 100)

    def test_installed_program_runs(self):
        status, output = run(self.prefix / "bin" / "hkt", "info", "--json")
        self.assertEqual(status, 0, output)
        info = json.loads(output)
        self.assertEqual(info["version"], (SOURCE / "VERSION").read_text().strip())
        self.assertEqual(info["torch_loaded"].split("+")[0], info["torch_built_with"].split("+")[0])

    def test_headers_are_those_that_users_need(self):
        installed = {p.relative_to(self.prefix / "include").as_posix() for p in (self.prefix / "include").rglob("*.h")}
        self.assertIn("hkt/nn/hkt_attention.h", installed)
        self.assertFalse([p for p in installed if "test_util" in p or p.startswith("hkt/testing")])

    def test_package_may_be_asked_for_in_several_folders(self):
        source = self.project("twice", {
            "CMakeLists.txt": """
                cmake_minimum_required(VERSION 3.25)
                project(twice LANGUAGES CXX)
                set(CMAKE_BUILD_RPATH mine)
                add_subdirectory(a)
                add_subdirectory(b)
                """,
            "a/CMakeLists.txt": "find_package(hkt REQUIRED)\n",
            "b/CMakeLists.txt": """
                find_package(hkt REQUIRED)
                if(NOT CMAKE_BUILD_RPATH STREQUAL "mine" OR NOT TARGET hkt::ops OR NOT TARGET hkt::train)
                  message(FATAL_ERROR "rpath or targets")
                endif()
                """})
        status, output = self.configure(source, self.root / "twice-build")
        self.assertEqual(status, 0, output)

    def test_another_minor_version_of_pytorch_is_refused(self):
        python = self.root / "python-of-another-torch"
        python.write_text("#!/bin/sh\ncat >/dev/null\nprintf '%s\\n' \"$0\" 2.99.0 /nonexistent/torch\n")
        python.chmod(0o755)
        status, output = self.configure(SOURCE / "examples" / "cpp", self.root / "refused", TORCH_PYTHON=str(python))
        self.assertNotEqual(status, 0)
        words = " ".join(output.split())
        self.assertIn("hkt was built with PyTorch", words)
        self.assertIn("found 2.99.0; set TORCH_PYTHON to a Python with", words)
        self.assertEqual(output.count("CMake Error"), 1, output)

    def test_a_python_without_pytorch_is_one_clear_error(self):
        status, output = self.configure(SOURCE / "examples" / "cpp", self.root / "without", TORCH_PYTHON="/bin/false")
        self.assertNotEqual(status, 0)
        self.assertIn("TORCH_PYTHON=/bin/false has no PyTorch", " ".join(output.split()))


if __name__ == "__main__":
    unittest.main()
