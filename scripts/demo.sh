#!/bin/sh
# Trains HKT and standard attention (MHA) one after the other on the same generated data and compares them.
# HKT_DEMO_STEPS sets the number of steps, HKT_DEMO_OUT the folder of the two runs, HKT_PROGRAM the program.
set -eu
cd "$(dirname "$0")/.."
program=${HKT_PROGRAM:-build/release/hkt}
steps=${HKT_DEMO_STEPS:-1500}
out=${HKT_DEMO_OUT:-runs/demo-$(date +%Y%m%d-%H%M%S)}

mkdir -p "$out"
for model in hkt mha; do
  echo "demo: training $model for $steps steps on ListOps (tiny), into $out/$model" >&2
  "$program" train --task listops --preset tiny --model "$model" --steps "$steps" --eval-every 250 --out "$out/$model" \
    --json >"$out/$model.json"
  "$program" eval "$out/$model" --json >/dev/null
done
python3 scripts/demo_table.py "$out"
