#!/bin/sh
# Finds the Python whose PyTorch hkt is built with: TORCH_PYTHON, else python3 of the active environment, else .venv of
# this repository. Prints that Python's path; with --describe also the PyTorch version and folder, a line each, and any
# further arguments are Pythons to ask before those two.
# PyTorch is looked up without being imported: it takes 0.05 s and needs no driver.
set -u
cd "$(dirname "$0")/.." || exit 1
oldest=2.9

describe() {  # -E: PYTHONPATH of a build front end must not hide or add a PyTorch
  "$1" -E - "$oldest" 2>/dev/null <<'PY'
import importlib.util, os, re, sys
spec = importlib.util.find_spec("torch")
if spec is None or not spec.submodule_search_locations:
    sys.exit(3)
folder = list(spec.submodule_search_locations)[0]
with open(os.path.join(folder, "version.py")) as f:
    version = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", f.read()).group(1)
pair = lambda text: tuple(int(x) for x in re.findall(r"\d+", text)[:2])
if pair(version) < pair(sys.argv[1]):
    sys.exit(4)
print(sys.executable, version, folder, sep="\n")
PY
}

format=${1:-}
[ $# -eq 0 ] || shift
if [ -n "${TORCH_PYTHON:-}" ]; then
  set -- "$TORCH_PYTHON"
else
  set -- "$@" python3 "$PWD/.venv/bin/python"
fi
for python in "$@"; do
  command -v "$python" >/dev/null 2>&1 || continue
  if found=$(describe "$python"); then
    if [ "$format" = --describe ]; then echo "$found"; else echo "$found" | head -n 1; fi
    exit 0
  fi
done
if [ -n "${TORCH_PYTHON:-}" ]; then
  echo "TORCH_PYTHON=$TORCH_PYTHON has no PyTorch $oldest or newer; name a Python that has one, or unset it and run 'make demo'" >&2
else
  echo "no PyTorch $oldest or newer in python3 or .venv; run 'make demo' or 'make test' (they install one), or set TORCH_PYTHON" >&2
fi
exit 1
