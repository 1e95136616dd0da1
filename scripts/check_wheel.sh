#!/bin/sh
# The Python package as a user meets it: pip install in a fresh environment, with and without build isolation, README's
# example with what was installed, what is in the wheel; ruff and mypy over the package; and with what was installed the tests
# that take longer or need Transformers, Lightning and peft (tests/python/long).
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH HKT_LIBRARY

# PyTorch's Python makes the environment, which sees the folder that PyTorch lies in: nothing fetches another.
base=$(sh scripts/find_torch.sh)
"$base" -m venv "$work/venv"
python=$work/venv/bin/python
"$base" -E -c 'import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec("torch").origin).parents[1])' \
  >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch_of_the_base.pth"
unset TORCH_PYTHON

"$python" - >"$work/example.py" <<'PY'
import pathlib
import re

(example,) = re.findall(r"^```python\n(.*?)^```$", pathlib.Path("README.md").read_text(), re.M | re.S)
assert len(example.splitlines()) <= 12, "README's example has more than 12 lines"
print(example)
print("assert loss.isfinite() and layer.level_logits.grad is not None")
print("assert not any(path == '' or 'python' == path.rsplit('/', 1)[-1] for path in __import__('sys').path)")
print("print(hkt.info())")
PY

for how in isolated not-isolated; do
  echo "check: pip install ., $how" >&2
  flags=""
  if [ $how = not-isolated ]; then
    "$python" -m pip install --quiet "scikit-build-core>=0.10"
    flags=--no-build-isolation
  fi
  "$python" -m pip install --quiet --force-reinstall $flags .
  (cd "$work" && "$python" example.py)
done
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/wheel" .
"$python" - "$work"/wheel/hkt-*-py3-none-*.whl <<'PY'
import sys
import zipfile

names = set(zipfile.ZipFile(sys.argv[1]).namelist())
wanted = {"hkt/__init__.py", "hkt/py.typed", "hkt/libhkt_ops.so", "hkt/libhkt_ops.json"}
assert wanted <= names, wanted - names
foreign = {name for name in names if not name.startswith(("hkt/", "hkt-"))}
assert not foreign, foreign
PY

echo "check: ruff and mypy over the Python package" >&2
"$python" -m pip install --quiet ruff mypy
(cd "$root" && "$python" -m ruff check python examples/python bench/python_attention.py && "$python" -m mypy)

echo "check: inductor, two processes, Transformers, Lightning, peft" >&2
"$python" -m pip install --quiet transformers accelerate lightning peft
# Nothing is downloaded, nothing compiled before is reused; one thread, as small layers on several wait for each other.
export HF_HUB_OFFLINE=1 TORCHINDUCTOR_CACHE_DIR="$work/inductor" OMP_NUM_THREADS=1
for test in tests/python/long/*_check.py; do
  echo "check: $test" >&2
  "$python" -W ignore "$test"
done
