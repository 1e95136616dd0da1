#!/bin/sh
# What takes longer than the tests: sanitizers over every folder that does not link LibTorch, and over a short training,
# its resume, evaluation and prediction with the whole program; the smoke experiments; fuzzing; the Python package in a
# fresh environment.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)

echo "check: address and undefined-behaviour sanitizers" >&2
mkdir -p build
cmake --preset asan-ubsan >build/asan-ubsan.log 2>&1 || { cat build/asan-ubsan.log >&2; exit 1; }
cmake --build --preset asan-ubsan --parallel "$jobs" --target torch_free_tests hkt
ctest --preset asan-ubsan -LE 'torch|e2e|structure|python|browser' -j "$jobs"

# LibTorch is not instrumented: containers that cross its border look overflown, and its own statics look leaked.
export ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=0 OMP_NUM_THREADS=$jobs
program=build/asan-ubsan/hkt
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
small="--task listops --preset tiny --batch 8 --eval-every 0 --save-every 10"
"$program" train $small --steps 20 --max-time 0.01 --out "$run/hkt" --quiet | grep "time is up"
"$program" train --resume --out "$run/hkt" --quiet --json | grep '"end": "finished"'
"$program" train $small --model mha --steps 5 --accumulate 2 --out "$run/mha" --quiet
"$program" eval "$run/hkt" --split validation --json >/dev/null
"$program" predict "$run/hkt" --text "[MAX 2 9 [MIN 4 7 ] 0 ]"
"$program" report "$run/hkt" "$run/mha" --json -o "$run/report.html" >/dev/null
"$program" data floors --task listops --preset tiny --json >/dev/null
echo "check: event files as TensorBoard reads them" >&2
sh scripts/check_tensorboard.sh "$PWD/$program"
unset ASAN_OPTIONS

echo "check: thread sanitizer over the kernels" >&2
cmake --preset tsan >build/tsan.log 2>&1 || { cat build/tsan.log >&2; exit 1; }
cmake --build --preset tsan --parallel "$jobs" --target torch_free_tests
ctest --preset tsan -R "bitwise|downsample|base_" -j "$jobs"  # what runs several workers

echo "check: the kernels alone, built, installed and used where LibTorch is not to be found" >&2
TORCH_PYTHON=/nonexistent cmake --preset kernels-only >build/kernels-only.log 2>&1 || { cat build/kernels-only.log >&2; exit 1; }
cmake --build --preset kernels-only --parallel "$jobs"
ctest --preset kernels-only -j "$jobs"
cmake --install build/kernels-only --prefix "$run/prefix" >/dev/null
cmake -S examples/kernels -B "$run/example" -DCMAKE_PREFIX_PATH="$run/prefix" >/dev/null
cmake --build "$run/example" >/dev/null
"$run/example/example" | grep "d_value"

echo "check: the smoke experiments" >&2
if [ ! -f build/release/CMakeCache.txt ]; then
  cmake --preset release -DHKT_BUILD_TESTS=OFF >build/smoke.log 2>&1 || { cat build/smoke.log >&2; exit 1; }
fi
cmake --build --preset release --parallel "$jobs" --target hkt
sh scripts/smoke.sh "$PWD/build/release/hkt"

echo "check: fuzz targets, a minute each" >&2
sh scripts/fuzz.sh 60

sh scripts/check_wheel.sh
echo "check: passed" >&2
