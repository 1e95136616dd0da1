#!/bin/sh
# Builds the fuzz targets (tests/fuzz) and runs each for a while, two at a time, from small right inputs that the program
# itself makes. A finding ends it with the input that does it.
#   scripts/fuzz.sh [seconds a target, 60] [target...]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
mkdir -p build
cmake --preset fuzz >build/fuzz.log 2>&1 || { cat build/fuzz.log >&2; exit 1; }
cmake --build --preset fuzz --parallel "$(nproc)"
[ $# -gt 0 ] || set -- $(ls tests/fuzz/*_fuzz.cc | xargs -n 1 basename | sed 's/_fuzz.cc//')
work=build/fuzz/work
rm -rf "$work"
mkdir -p "$work"
python3 tests/fuzz/seeds.py "$work"
fuzz_one() {
  if ! build/fuzz/rooms/fuzz/"$1"_fuzz -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len="$(cat "$work/$1.len")" \
      -artifact_prefix="$work/$1-" -print_final_stats=1 "$work/$1" >"$work/$1.log" 2>&1; then
    tail -n 40 "$work/$1.log" >&2
    echo "fuzz: $1 failed; its input: $(ls "$work/$1"-* 2>/dev/null)" >&2
    return 1
  fi
  echo "fuzz: $1, $(sed -n 's/stat::number_of_executed_units: *//p' "$work/$1.log") inputs, no finding" >&2
}
failed=0
while [ $# -gt 0 ]; do
  fuzz_one "$1" &
  first=$!
  if [ $# -gt 1 ]; then
    fuzz_one "$2" || failed=1
    shift
  fi
  shift
  wait $first || failed=1
done
exit $failed
