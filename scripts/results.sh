#!/bin/sh
# Makes from the committed results what is committed of them: docs/results-tables.md and docs/report.html. No training.
#   scripts/results.sh [FOLDER]   default docs
set -eu
cd "$(dirname "$0")/.."
folder=${1:-docs}
program=${HKT_PROGRAM:-build/release/hkt}
mkdir -p "$folder"
"$program" report --experiments --markdown "$folder/results-tables.md"
# Runs that look at inputs of our own, so that the page shows nothing of a data set (experiments/examples/README.md).
"$program" report experiments/examples/*/ --experiments -o "$folder/report.html"
