#!/bin/sh
# Installs what is missing to build hkt, and says what it does: Debian packages, and a .venv with PyTorch where neither
# TORCH_PYTHON nor the active environment has one. Quick when nothing is missing.
#   scripts/setup.sh           for the program
#   scripts/setup.sh --tests   for the tests as well
#   scripts/setup.sh --check   for the tests and for what 'make check' adds, fuzzing with clang
set -eu
cd "$(dirname "$0")/.."
torch_version=2.13.0

say() { echo "setup: $*" >&2; }

missing=""
need_command() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need_header() {  # a header in the compiler's folders; the package that has it
  for folder in /usr/include /usr/local/include ${CPATH:+$(echo "$CPATH" | tr : ' ')}; do
    [ -e "$folder/$1" ] && return 0
  done
  missing="$missing $2"
}

need_command g++ g++
need_command cmake cmake
need_command ninja ninja-build
need_command python3 python3
need_header CLI/CLI.hpp libcli11-dev
need_header nlohmann/json.hpp nlohmann-json3-dev
need_header archive.h libarchive-dev
need_header zlib.h zlib1g-dev
need_header xxhash.h libxxhash-dev
need_header hwy/highway.h libhwy-dev
need_header boost/math/distributions/students_t.hpp libboost-dev
if [ "${1:-}" = --tests ] || [ "${1:-}" = --check ]; then
  need_command git git
  need_header gtest/gtest.h libgtest-dev
  need_header gmock/gmock.h libgmock-dev
  need_header benchmark/benchmark.h libbenchmark-dev
fi
if [ "${1:-}" = --check ]; then
  need_command clang++ clang
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -x c++ -fsanitize=fuzzer,address - -o /dev/null >/dev/null 2>&1 || missing="$missing libclang-rt-dev"
fi
have_torch=yes
sh scripts/find_torch.sh >/dev/null 2>&1 || have_torch=no
if [ $have_torch = no ] && command -v python3 >/dev/null 2>&1; then
  python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
elif [ $have_torch = no ]; then
  missing="$missing python3-venv"
fi

# How this user may install packages: "" as root, "sudo -n", or "no".
if ! command -v apt-get >/dev/null 2>&1; then
  sudo=no
elif [ "$(id -u)" = 0 ]; then
  sudo=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  sudo="sudo -n"
else
  sudo=no
fi
install_line() { echo "apt-get install -y --no-install-recommends$1"; }
install() {  # installs the packages $1, or shows the end of what apt said and returns 1
  say "installing$1"
  log=$(mktemp)
  if ! { $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive $(install_line "$1"); } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

if [ -n "$missing" ]; then
  command -v ccache >/dev/null 2>&1 || missing="$missing ccache"  # not needed, but when something is installed anyway
  if ! command -v apt-get >/dev/null 2>&1; then
    say "this is no Debian system; with your package manager install what these Debian packages hold, then repeat:$missing"
    exit 1
  elif [ "$sudo" = no ]; then
    say "packages are missing and this user may not install them; run this line, then repeat:"
    echo "  sudo apt-get update && sudo $(install_line "$missing")" >&2
    exit 1
  elif ! install "$missing"; then
    say "the packages could not be installed (see above); mend that and run: ${sudo:+sudo }$(install_line "$missing")"
    exit 1
  fi
fi

# The tests of the report's page: a browser, node and two packages of npm. Where they cannot be had, all else goes on, and
# those tests say that they did not run.
if [ "${1:-}" = --tests ] || [ "${1:-}" = --check ]; then
  page=""
  sh scripts/find_chromium.sh >/dev/null || page="$page chromium"
  command -v node >/dev/null 2>&1 || page="$page nodejs"
  command -v npm >/dev/null 2>&1 || page="$page npm"
  if [ -n "$page" ] && { [ "$sudo" = no ] || ! install "$page"; }; then
    say "without$page the tests of the report's page will not run; to have them: sudo $(install_line "$page")"
  fi
  installed=tests/browser/node_modules/.package-lock.json
  if command -v npm >/dev/null 2>&1 && { [ ! -e $installed ] || [ tests/browser/package-lock.json -nt $installed ]; }; then
    say "installing playwright-core and axe-core into tests/browser/node_modules"
    (cd tests/browser && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null) ||
      say "npm could not install them (see above); the tests of the report's page will not run"
  fi
fi

if [ $have_torch = no ]; then
  if [ -n "${TORCH_PYTHON:-}" ]; then  # it was named and has no PyTorch that serves
    sh scripts/find_torch.sh
  fi
  say "installing PyTorch $torch_version into .venv${TORCH_INDEX_URL:+ from $TORCH_INDEX_URL}"
  .venv/bin/python -m pip --version >/dev/null 2>&1 || python3 -m venv --clear .venv
  if ! .venv/bin/python -m pip install --quiet ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} "torch==$torch_version"; then
    say "PyTorch $torch_version could not be installed; set TORCH_INDEX_URL to an index that has it (README, 'PyTorch'), or TORCH_PYTHON to a Python with PyTorch 2.9 or newer"
    exit 1
  fi
fi
