"""hkt bench: every contender is timed, figures agree with each other, bad flags are one line; the example of the kernels."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["HKT_PROGRAM"]
SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
QUICK = ["--calls", "3", "--min-seconds", "0", "--threads", "1"]
PEER = r"""
#include <cstring>
extern "C" void hkt_fwd(int, int D, const float* const*, const float* const*, const float* value, const float*, float, int T,
                        float* out, float*) { std::memcpy(out, value, sizeof(float) * D * T); }
extern "C" void hkt_bwd(int, int D, const float* const*, const float* const*, const float*, const float*, float, int T,
                        const float* out, const float*, const float*, float* const*, float* const*, float* d_value) {
  std::memcpy(d_value, out, sizeof(float) * D * T);
}
"""


def hkt(*args):
    return subprocess.run([PROGRAM, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class BenchTest(unittest.TestCase):
    def report(self, *args):
        done = hkt("bench", *args, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertLessEqual({"processor", "target", "torch_loaded", "commit"}, set(report["environment"]))
        return report

    def check_timing(self, timing, calls=3):
        self.assertGreaterEqual(timing["calls"], calls)
        self.assertTrue(0 < timing["best_seconds"] <= timing["p10_seconds"] <= timing["median_seconds"] <= timing["p90_seconds"], timing)

    def test_attention(self):
        report = self.report("attention", "--seq-len", "64", "130", "--head-dim", "32", "--batch-heads", "2", *QUICK)
        self.assertEqual([(c["T"], c["pass"]) for c in report["cells"]],
                         [(T, p) for T in (64, 130) for p in ("forward", "backward", "forward_backward")])
        for cell in report["cells"]:
            ours = {"hkt", "mha", "fma_peak"}
            stock = set() if cell["pass"] == "backward" else {"torch_mha", "torch_hkt", "torch_math", "torch_eager"}
            self.assertEqual(set(cell["timings"]), ours | stock)
            for timing in cell["timings"].values():
                self.check_timing(timing)
            # Useful operations: h score products and P V forward, 3 h + 2 backward.
            h, pairs = 1.3125, 2 * cell["T"] ** 2 * 32
            units = {"forward": h + 1, "backward": 3 * h + 2, "forward_backward": 4 * h + 3}[cell["pass"]]
            hkt_ = cell["timings"]["hkt"]
            self.assertAlmostEqual(hkt_["gflops_best"] * hkt_["best_seconds"] * 1e9 / (units * pairs), 1, places=6)
            self.assertAlmostEqual(cell["ratios"]["hkt/mha"]["best"],
                                   hkt_["best_seconds"] / cell["timings"]["mha"]["best_seconds"], places=9)
            self.assertTrue(0 < cell["peak_share"]["hkt"]["best"] < 1.1)
            inputs = 4 * 2 * 32 * (2 * (cell["T"] + (cell["T"] + 1) // 2 + (cell["T"] + 3) // 4) + cell["T"])
            self.assertEqual(cell["operand_bytes"]["hkt"]["inputs"], inputs)

    def test_a_peer_takes_part(self):
        with tempfile.TemporaryDirectory(prefix="hkt-peer-") as folder:
            source, library = pathlib.Path(folder, "peer.cc"), pathlib.Path(folder, "peer.so")
            source.write_text(PEER)
            subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
            report = self.report("attention", "--seq-len", "64", "--head-dim", "32", "--peer", str(library), *QUICK)
            for cell in report["cells"]:
                self.assertLessEqual({"peer_hkt", "peer_mha"}, set(cell["timings"]))
                self.assertGreater(cell["ratios"]["hkt/peer_hkt"]["best"], 0)
            wide = self.report("attention", "--seq-len", "64", "--head-dim", "40", "--peer", str(library), *QUICK)
            self.assertNotIn("peer_hkt", wide["cells"][0]["timings"])

    def test_downsample(self):
        report = self.report("downsample", "--seq-len", "50", "--d-model", "16", "--batch", "2", *QUICK)
        self.assertEqual([c["pass"] for c in report["cells"]], ["forward", "forward_backward"])
        for cell in report["cells"]:
            self.assertEqual(set(cell["timings"]), {"hkt", "torch", "fma_peak"})
            for timing in cell["timings"].values():
                self.check_timing(timing)

    def test_train(self):
        report = self.report("train", "--calls", "3", "--seq-len", "64", "--batch", "2", "--d-model", "16", "--d-ff", "16",
                             "--layers", "1", "--threads", "1")
        arms = {"hkt_fusion", "hkt_fusion_composite", "hkt", "hkt_composite", "mha", "mha_conv", "mha_wide", "mha_torch"}
        self.assertEqual(set(report["arms"]), arms)
        for timing in report["arms"].values():
            self.check_timing(timing)
            self.assertGreaterEqual(timing["memory_bytes"], 0)
        parameters = {name: arm["parameters"] for name, arm in report["arms"].items()}
        self.assertEqual(parameters["hkt"], parameters["hkt_composite"])
        self.assertEqual(parameters["mha"], parameters["mha_torch"])
        self.assertTrue(parameters["mha"] < parameters["hkt_fusion"] < parameters["hkt"], parameters)
        self.assertLess(abs(parameters["mha_wide"] / parameters["hkt"] - 1), 0.05)
        self.assertGreater(report["ratios"]["hkt_fusion_composite/hkt_fusion"]["best"], 0)

    def test_memory_of_a_training_step(self):
        arms = self.report("train", "--calls", "1", "--seq-len", "1024", "--batch", "4", "--threads", "1")["arms"]
        # PyTorch's composites hold whole matrices of scores, T x T a head and level; fused kernels hold none.
        scores = 4 * 2 * 1024 * 1024 * 4
        self.assertGreater(arms["hkt_fusion_composite"]["memory_bytes"], arms["hkt_fusion"]["memory_bytes"] + scores)
        # All of a step's activations: at least the residual stream of both layers, B x T x d floats each.
        self.assertGreater(arms["mha"]["memory_bytes"], 2 * 4 * 1024 * 64 * 4)

    def test_tables(self):
        done = hkt("bench", "attention", "--seq-len", "64", "--head-dim", "32", *QUICK)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"T=64 D=32 .* pass=forward ")
        self.assertRegex(done.stdout, r"(?m)^  hkt/mha +\d")
        done = hkt("bench", "train", "--calls", "1", "--seq-len", "16", "--batch", "1", "--d-model", "8", "--d-ff", "8", "--layers", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # best, median, p10 ... p90, calls, memory
        self.assertRegex(done.stdout, r"(?m)^  hkt_fusion( +[\d.]+){2} +[\d.]+ \.\.\. +[\d.]+ +\d+ +[\d.]+$")

    def test_wrong_use_is_one_line(self):
        wrong = {("attention", "--seq-len", "0"): "--seq-len is 0", ("attention", "--head-dim", "5000"): "--head-dim is 5000",
                 ("attention", "--peer", "/nowhere.so"): "--peer /nowhere.so cannot be loaded",
                 ("attention", "--peer", "/dev/null"): "--peer /dev/null cannot be loaded: not a plain file",
                 ("attention", "--threads", "100000"): "threads is 100000", ("attention", "--levels", "0"): "--levels is 0",
                 ("attention", "--stride", "1"): "--stride is 1", ("attention", "--calls", "0"): "--calls is 0",
                 ("attention", "--min-seconds", "-1"): "--min-seconds is -1", ("attention", "--threads", "1", "0"): "--threads is 0",
                 ("nonsense",): "unknown command 'bench nonsense'",
                 ("downsample", "--kernel-size", "0"): "--kernel-size is 0", ("train", "--heads", "3"): "d_model", (): "subcommand"}
        for args, message in wrong.items():
            done = hkt("bench", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
