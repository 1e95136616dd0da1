#!/bin/sh
# Trains, kills, resumes and reads the event files with TensorBoard's own reader, installed into build/tensorboard-venv.
#   scripts/check_tensorboard.sh PROGRAM
set -eu
cd "$(dirname "$0")/.."
venv=build/tensorboard-venv
if ! "$venv/bin/python" -c 'import tensorboard' 2>/dev/null; then
  echo "check: installing TensorBoard into $venv" >&2
  python3 -m venv --clear "$venv"
  "$venv/bin/python" -m pip install --quiet "tensorboard==2.20.0" "setuptools<81"  # it imports pkg_resources
fi
HKT_PROGRAM=${1:?usage: scripts/check_tensorboard.sh PROGRAM} "$venv/bin/python" tests/e2e/tensorboard_check.py -v
