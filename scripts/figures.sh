#!/bin/sh
# Draws the README's figures from the committed results: the report's plots, saved by the page itself in headless Chromium.
#   scripts/figures.sh [FOLDER]   default docs/figures
set -eu
cd "$(dirname "$0")/.."
folder=${1:-docs/figures}
program=${HKT_PROGRAM:-build/release/hkt}
CHROMIUM=$(sh scripts/find_chromium.sh) || { echo "figures: Chromium is not there; install it (apt-get install chromium) or set CHROMIUM" >&2; exit 1; }
export CHROMIUM
page=$(mktemp -d)
trap 'rm -rf "$page"' EXIT
"$program" report --experiments ${HKT_EXPERIMENTS:+"$HKT_EXPERIMENTS"} -o "$page/report.html" >/dev/null
mkdir -p "$folder"
node tests/browser/figures.mjs "$page/report.html" "$folder" accuracy comparisons
