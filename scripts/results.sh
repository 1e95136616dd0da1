#!/bin/sh
# Makes from the committed results what is committed of them: docs/results-tables.md and docs/report.html. No training.
#   scripts/results.sh [FOLDER]   default docs
set -eu
cd "$(dirname "$0")/.."
folder=${1:-docs}
program=${HKT_PROGRAM:-build/release/hkt}
mkdir -p "$folder"
"$program" report --experiments --markdown "$folder/results-tables.md"
# Runs without weights, their examples inputs of our own (docs/experiments.md).
"$program" report experiments/results/runs/*/ --experiments -o "$folder/report.html"
