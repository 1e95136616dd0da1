#!/bin/sh
# Makes the tables (committed) and the report's page (not) from the committed results. No training.
#   scripts/results.sh [TABLES [PAGE]]   default docs/results-tables.md build/report.html
set -eu
cd "$(dirname "$0")/.."
tables=${1:-docs/results-tables.md}
page=${2:-build/report.html}
program=${HKT_PROGRAM:-build/release/hkt}
"$program" report --experiments --markdown "$tables"
# Runs without weights, their examples inputs of our own (docs/experiments.md).
"$program" report experiments/results/runs/*/ --experiments -o "$page"
