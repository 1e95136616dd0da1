"""Finding and loading the library: another PyTorch, a missing file, a second copy, and hkt.info()."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

from hkt import _library

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
LIBRARY = pathlib.Path(os.environ["HKT_LIBRARY"])
QUIET = "import warnings; warnings.filterwarnings('ignore', 'Failed to initialize NumPy'); "


def python(code, library=LIBRARY, **env):
    environment = {**os.environ, "HKT_LIBRARY": str(library), **env}
    return subprocess.run([sys.executable, "-c", QUIET + code], capture_output=True, text=True, timeout=120, env=environment)


class LibraryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hkt-library-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def copy(self, described):
        library = self.folder / "libhkt_ops.so"
        library.symlink_to(LIBRARY)
        if described is not None:
            library.with_suffix(".json").write_text(described)
        return library

    def refused(self, library, message, **env):
        done = python("import hkt", library, **env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], f"^ImportError: {message}")

    def test_another_pytorch_is_one_error_with_both_versions_and_what_to_run(self):
        library = self.copy('{"hkt": "0.1.0", "torch": "2.99.1+cpu"}')
        self.refused(library, r"hkt was built with PyTorch 2\.99\.1\+cpu and this is PyTorch 2\.\d+.*; .*"
                              r"Run 'pip install --force-reinstall \.' in hkt's folder .*, or 'pip install \"torch==2\.99\.\*\"'$")

    def test_another_patch_of_the_same_minor_version_is_fine(self):
        minor = re.match(r"\d+\.\d+", json.loads(LIBRARY.with_suffix(".json").read_text())["torch"])[0]
        done = python("import hkt; print(hkt.__version__)", self.copy(json.dumps({"hkt": "0.1.0", "torch": f"{minor}.99"})))
        self.assertEqual((done.returncode, done.stdout), (0, "0.1.0\n"), done.stderr)

    def test_missing_and_unreadable_files(self):
        self.refused(self.folder / "none.so", r"hkt: there is no library at .*none\.so, which HKT_LIBRARY names; name the file")
        for described in (None, "{", "[]", "{}", '{"torch": 3, "hkt": ""}', '{"torch": "x", "hkt": ""}'):
            message = r"hkt: .*libhkt_ops\.json, which a build leaves beside the library, cannot be read"
            with self.subTest(described=described), self.assertRaisesRegex(ImportError, message):
                _library._built_with(self.copy(described))
            for file in self.folder.iterdir():
                file.unlink()
        package = self.folder / "hkt"
        shutil.copytree(SOURCE / "python" / "hkt", package, ignore=shutil.ignore_patterns("__pycache__"))
        environment = {key: value for key, value in os.environ.items() if key != "HKT_LIBRARY"} | {"PYTHONPATH": str(self.folder)}
        done = subprocess.run([sys.executable, "-c", "import hkt"], capture_output=True, text=True, env=environment)
        self.assertRegex(done.stderr, r"ImportError: hkt: there is no library at .*hkt/libhkt_ops\.so; run 'pip install \.'")

    def test_operators_that_are_loaded_already_are_taken(self):
        code = f"import shutil, torch; shutil.copy({str(LIBRARY)!r}, {str(self.folder)!r}); torch.ops.load_library({str(self.folder)!r} + '/libhkt_ops.so'); import hkt; print(hkt.HKTAttention(8, 2)(torch.ones(1, 9, 8)).shape)"
        done = python(code)
        self.assertEqual((done.returncode, done.stdout), (0, "torch.Size([1, 9, 8])\n"), done.stderr)

    def test_info(self):
        done = python("import hkt, json; print(json.dumps(hkt.info()))")
        info = json.loads(done.stdout)
        program = json.loads(subprocess.run([os.environ["HKT_PROGRAM"], "info", "--json"], capture_output=True, text=True).stdout)
        for key in ("version", "commit", "compiler", "torch_built_with", "target", "targets_usable", "targets_compiled", "threads"):
            self.assertEqual(info[key], program[key], key)
        self.assertEqual(info["version"], (SOURCE / "VERSION").read_text().strip())
        self.assertEqual(info["library"], str(LIBRARY))
        self.assertEqual(set(info) - set(program), {"library"})
        done = python("import hkt; hkt.info()", HKT_TARGET="Z80")
        self.assertRegex(done.stderr, "HKT_TARGET is 'Z80'; it must be one of the SIMD targets")


if __name__ == "__main__":
    unittest.main()
