# Thin: each target does its own set-up on a fresh machine, then calls CMake, ctest or a script.
.DEFAULT_GOAL := build
.PHONY: setup setup-tests setup-check build demo test check wheel format bench results figures clean

HKT_WERROR ?= OFF
CONFIGURE = cmake --preset release -DHKT_WERROR=$(HKT_WERROR)
QUIET = >build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }

setup:
	@sh scripts/setup.sh

setup-tests:
	@sh scripts/setup.sh --tests

setup-check:
	@sh scripts/setup.sh --check

build: setup  ## the program and the operators: build/release/hkt, build/release/libhkt_ops.so
	@mkdir -p build && $(CONFIGURE) -DHKT_BUILD_TESTS=OFF $(QUIET)
	@cmake --build --preset release --parallel $$(nproc) --target hkt hkt_ops

demo: build  ## train HKT and standard attention on generated data and compare them
	@sh scripts/demo.sh

test: setup-tests  ## every test
	@mkdir -p build && $(CONFIGURE) -DHKT_BUILD_TESTS=ON $(QUIET)
	@cmake --build --preset release --parallel $$(nproc)
	@ctest --preset release -j 2

check: setup-check  ## sanitizer builds and what takes longer
	@sh scripts/check.sh

wheel: setup  ## the Python package for the PyTorch at hand: build/wheel/hkt-*.whl
	@python="$$(sh scripts/find_torch.sh)" && TORCH_PYTHON="$$python" \
	  "$$python" -m pip wheel --quiet --no-deps --wheel-dir build/wheel .

bench: build  ## training steps per second against a page of plain PyTorch
	@python="$$(sh scripts/find_torch.sh)" && "$$python" bench/train_speed.py

results: build  ## tables and report from the committed results: docs/results-tables.md, build/report.html
	@sh scripts/results.sh

figures: build setup-tests  ## the README's figures from the committed results: docs/figures/*.svg
	@sh scripts/figures.sh

format:  ## clang-format over every source file
	@git ls-files '*.cc' '*.h' | xargs clang-format-14 -i

clean:
	rm -rf build
