"""The operators from Python: opcheck, gradcheck, torch.compile and torch.export, autocast, and what HKT_EXPLAIN says.

opcheck is no test of gradients (it passes when they are missing), so grad_fn and gradcheck are asserted beside it.
"""

import copy
import os
import pathlib
import subprocess
import sys
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch
from torch._dynamo.utils import counters

LIBRARY = pathlib.Path(os.environ["HKT_BUILD_DIR"]) / "libhkt_ops.so"
torch.ops.load_library(LIBRARY)
hkt = torch.ops.hkt


def levels(T, L, s):
    sizes = [T]
    for _ in range(L - 1):
        sizes.append(-(-sizes[-1] // s))
    return sizes


def attention_inputs(B=2, H=4, Hkv=2, T=13, D=3, Dv=5, L=3, s=2, dtype=torch.float64, grad=True, strided=False):
    """queries, keys, value; strided: [B, T, H, D] memory, as the layer has them."""
    torch.manual_seed(T)

    def make(heads, rows, width):
        x = torch.randn(B, rows, heads, width, dtype=dtype).transpose(1, 2)
        return (x if strided else x.contiguous()).detach().requires_grad_(grad)

    sizes = levels(T, L, s)
    return [make(H, n, D) for n in sizes], [make(Hkv, n, D) for n in sizes], make(Hkv, T, Dv)


def downsample_inputs(B=2, T=7, d=4, k=3, dtype=torch.float64, grad=True):
    torch.manual_seed(d)
    shapes = [(B, T, d), (d, 1, k), (d,), (d, d), (d,), (d,), (d,)]
    return [torch.randn(shape, dtype=dtype).requires_grad_(grad) for shape in shapes]


class SchemaTest(unittest.TestCase):
    def check(self, op, args, **options):
        result = torch.library.opcheck(op, args, **options)
        self.assertEqual(set(result.values()), {"SUCCESS"}, result)

    def test_attention(self):
        lengths = torch.tensor([13, 4])
        for dtype in [torch.float32, torch.float64, torch.bfloat16]:
            for strided in [False, True]:
                q, k, v = attention_inputs(dtype=dtype, strided=strided)
                self.check(hkt.attention.default, (q, k, v, 2))
        q, k, v = attention_inputs(dtype=torch.float32)
        self.check(hkt.attention.default, (q, k, v, 2, 0.7, False, lengths))
        self.check(hkt.attention.default, (q, k, v, 2, None, True, lengths))

    def test_the_parts(self):
        # Detached: those of attention and downsample have no derivative of their own.
        for dtype in [torch.float32, torch.float64]:
            q, k, v = attention_inputs(dtype=dtype, grad=False, strided=True)
            for lengths in [None, torch.tensor([13, 0])]:
                self.check(hkt.attention_forward.default, (q, k, v, 2, None, True, lengths))
                out, lse = hkt.attention_forward(q, k, v, 2, None, True, lengths)
                d_out = torch.randn_like(out)
                self.check(hkt.attention_backward.default, (d_out, q, k, v, out, lse, 2, None, True, lengths))
            x = downsample_inputs(dtype=dtype, grad=False)
            out = hkt.downsample(*x, 2)
            self.check(hkt.downsample_backward.default, (torch.randn_like(out), *x, 2))
            out = hkt.depthwise_conv(*x[:3], 2)
            self.check(hkt.depthwise_conv_backward.default, (torch.randn_like(out), *x[:2], 2))

    def test_downsample(self):
        for dtype in [torch.float32, torch.float64, torch.float16]:
            self.check(hkt.downsample.default, (*downsample_inputs(dtype=dtype), 2))

    def test_depthwise_conv_and_dropout(self):
        for dtype in [torch.float32, torch.float64, torch.float16]:
            x = downsample_inputs(dtype=dtype)
            for stride in [1, 2]:
                self.check(hkt.depthwise_conv.default, (*x[:3], stride))
                d_out = torch.randn_like(hkt.depthwise_conv(*x[:3], stride)).requires_grad_()
                self.check(hkt.depthwise_conv_backward.default, (d_out, *x[:2], stride))
            self.check(hkt.dropout.default, (x[0], torch.tensor(5), 0.3))

    def test_multiscale_attention(self):
        q, k, v = attention_inputs(dtype=torch.float32, strided=True)
        branches = [torch.randn(2, 4, n, 5, requires_grad=True) for n in levels(13, 3, 2)]
        logits = [torch.randn(4, 3, requires_grad=True) for _ in range(2)]
        for lengths in [None, torch.tensor([13, 4])]:
            self.check(hkt.multiscale_attention.default, (q, k, v, *logits, branches, 2, None, 1.5, True, lengths))
            self.check(hkt.multiscale_attention.default, (q, k, v, logits[0], None, [], 2, None, 1.0, False, lengths))
            one = [torch.randn(4, 1, requires_grad=True) for _ in range(2)]
            self.check(hkt.multiscale_attention.default, (q[:1], k[:1], v, one[0], None, [], 2, None, 1.0, True, lengths))
            self.check(hkt.multiscale_attention.default, (q[:1], k[:1], v, *one, branches[:1], 2, None, 1.0, True, lengths))

    def test_meta_strides_are_the_kernels(self):
        q, k, v = attention_inputs(dtype=torch.float32, grad=False)
        meta = lambda xs: [x.to("meta") for x in xs]
        out, lse = hkt.attention_forward(q, k, v, 2)
        d = hkt.attention_backward(out, q, k, v, out, lse, 2, None, True, None)
        x = downsample_inputs(dtype=torch.float32, grad=False)
        y = hkt.downsample(*x, 2)
        real = [out, lse, *d, y, *hkt.downsample_backward(y, *x, 2)]
        z = hkt.depthwise_conv(*x[:3], 2)
        real += [z, *hkt.depthwise_conv_backward(z, *x[:2], 2), hkt.dropout(y, torch.tensor(1), 0.5)]
        q, k, v, x = meta(q), meta(k), v.to("meta"), meta(x)
        out, lse = hkt.attention_forward(q, k, v, 2)
        y = hkt.downsample(*x, 2)
        fake = [out, lse, *hkt.attention_backward(out, q, k, v, out, lse, 2, None, True, None), y,
                *hkt.downsample_backward(y, *x, 2)]
        z = hkt.depthwise_conv(*x[:3], 2)
        fake += [z, *hkt.depthwise_conv_backward(z, *x[:2], 2), hkt.dropout(y, torch.tensor(1, device="meta"), 0.5)]
        self.assertEqual([(x.shape, x.stride(), x.dtype) for x in fake], [(x.shape, x.stride(), x.dtype) for x in real])
        self.assertTrue(real[0].transpose(1, 2).is_contiguous())


class GradientTest(unittest.TestCase):
    def test_every_output_has_a_grad_fn(self):
        for dtype in [torch.float32, torch.float64]:
            for needed in range(7):
                q, k, v = attention_inputs(dtype=dtype, grad=False)
                (q + k + [v])[needed].requires_grad_(True)
                self.assertIsNotNone(hkt.attention(q, k, v, 2).grad_fn)
                x = downsample_inputs(dtype=dtype, grad=False)
                x[needed].requires_grad_(True)
                self.assertIsNotNone(hkt.downsample(*x, 2).grad_fn)

    def test_attention_gradients_equal_differences(self):
        for causal in [True, False]:
            for lengths in [None, torch.tensor([7, 3])]:
                q, k, v = attention_inputs(T=7, H=2, Hkv=1, D=2, Dv=2)
                call = lambda *x: hkt.attention(x[:3], x[3:6], x[6], 2, 0.9, causal, lengths)
                self.assertTrue(torch.autograd.gradcheck(call, (*q, *k, v)))
        x = torch.randn(1, 2, 5, 3, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda x: hkt.attention([x], [x], x, 2), (x,)))

    def test_downsample_gradients_equal_differences(self):
        for s in [1, 2, 5]:
            self.assertTrue(torch.autograd.gradcheck(lambda *x: hkt.downsample(*x, s), downsample_inputs()))

    def test_depthwise_conv_and_dropout_gradients_equal_differences(self):
        x = downsample_inputs()
        for s in [1, 2, 5]:
            self.assertTrue(torch.autograd.gradcheck(lambda *x: hkt.depthwise_conv(*x, s), x[:3]))
            self.assertTrue(torch.autograd.gradgradcheck(lambda *x: hkt.depthwise_conv(*x, s), x[:3]))
        self.assertTrue(torch.autograd.gradgradcheck(lambda x: hkt.dropout(x, torch.tensor(3), 0.4), x[:1]))

    def test_what_has_no_derivative_says_so(self):
        q, k, v = attention_inputs(L=1)
        y = hkt.attention(q, k, v, 2).square().sum()
        (first,) = torch.autograd.grad(y, v, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "attention_backward is not implemented"):
            first.square().sum().backward()
        x = downsample_inputs()
        (first,) = torch.autograd.grad(hkt.downsample(*x, 2).square().sum(), x[0], create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "downsample_backward is not implemented"):
            first.square().sum().backward()
        with self.assertRaisesRegex(NotImplementedError, "call hkt::attention, which has one"):
            hkt.attention_forward(q, k, v, 2)[0].sum().backward()
        with self.assertRaisesRegex(RuntimeError, "functorch"):
            torch.func.grad(lambda v: hkt.attention(q, k, v, 2).sum())(v.detach())
        with self.assertRaisesRegex(RuntimeError, "jvp is not implemented|Forward AD|forward AD"):
            with torch.autograd.forward_ad.dual_level():
                dual = torch.autograd.forward_ad.make_dual(v, torch.ones_like(v))
                hkt.attention(q, k, dual, 2)

    def test_checkpointing_recomputes_to_the_same_bits(self):
        q, k, v = attention_inputs(dtype=torch.float32)
        plain = torch.autograd.grad(hkt.attention(q, k, v, 2).square().sum(), [*q, *k, v])
        again = torch.utils.checkpoint.checkpoint(lambda *x: hkt.attention(x[:3], x[3:6], x[6], 2), *q, *k, v,
                                                  use_reentrant=False)
        for got, want in zip(torch.autograd.grad(again.square().sum(), [*q, *k, v]), plain):
            self.assertTrue(torch.equal(got, want))


class Head(torch.nn.Module):
    """Downsampling, projections and the whole head, as the layer calls them: T of any size, strided heads."""

    def __init__(self, d=8, H=2, L=2):
        super().__init__()
        torch.manual_seed(1)
        self.H, self.L = H, L
        linear = lambda: torch.nn.Parameter(torch.randn(d, d) / d**0.5)
        self.q = torch.nn.ParameterList([linear() for _ in range(L)])
        self.k = torch.nn.ParameterList([linear() for _ in range(L)])
        self.v, self.pointwise = linear(), linear()
        self.depthwise = torch.nn.Parameter(torch.randn(d, 1, 3))
        self.vectors = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(d)) for _ in range(4)])
        self.level_logits = torch.nn.Parameter(torch.randn(H, L))

    def forward(self, x):
        b = self.vectors
        levels = [x]
        for _ in range(1, self.L):
            levels.append(hkt.downsample(levels[-1], self.depthwise, b[0], self.pointwise, b[1], b[2], b[3], 2))
        heads = lambda y, w: (y @ w).unflatten(2, (self.H, -1)).transpose(1, 2)
        q = [heads(y, w) for y, w in zip(levels, self.q)]
        k = [heads(y, w) for y, w in zip(levels, self.k)]
        out = hkt.multiscale_attention(q, k, heads(x, self.v), self.level_logits, None, [], 2, None, 1.0, True, None)
        return out.transpose(1, 2).flatten(2)


def sequence(T):
    """[B, T, d], not contiguous."""
    torch.manual_seed(T)
    return torch.randn(3, 8, T).transpose(1, 2).requires_grad_(True)


class CompileTest(unittest.TestCase):
    def graphs(self, module, inputs, dynamic=True, bits=True):
        """Compiled equals eager (bit for bit, or where PyTorch sums in another order, closely), values and gradients; the
        number of graphs."""
        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(module, fullgraph=True, dynamic=dynamic, backend="aot_eager")
        parameters = list(module.parameters()) if isinstance(module, torch.nn.Module) else []
        for args in inputs:
            wanted = [x for x in args if x.requires_grad] + parameters
            results = []
            for call in [module, compiled]:
                out = call(*args)
                results.append([out, *torch.autograd.grad(out.square().sum(), wanted)])
            for got, want in zip(*reversed(results)):
                torch.testing.assert_close(got, want, **({"rtol": 0, "atol": 0} if bits else {}))
                if bits:
                    self.assertEqual(got.stride(), want.stride())
        return counters["stats"]["unique_graphs"]

    def test_one_graph_serves_every_length(self):
        self.assertEqual(self.graphs(Head(), [(sequence(T),) for T in [7, 13, 64]]), 1)

    def test_one_graph_of_the_operator_alone(self):
        def call(q0, q1, k0, k1, v, lengths):
            return hkt.attention([q0, q1], [k0, k1], v, 2, None, True, lengths)

        def args(T, dtype):
            # No two sizes alike at the first length: torch.compile would take them for one, and then for two.
            q, k, v = attention_inputs(H=6, Hkv=3, T=T, D=5, Dv=9, L=2, dtype=dtype, strided=True)
            return (*q, *k, v, torch.tensor([T, T // 2]))

        for dtype in [torch.float32, torch.float64]:
            self.assertEqual(self.graphs(call, [args(T, dtype) for T in [7, 13, 64]]), 1)

    def test_one_graph_of_the_hybrid_head(self):
        def call(q0, q1, k0, k1, v, level_logits, gate_logits, b0, b1, lengths):
            return hkt.multiscale_attention([q0, q1], [k0, k1], v, level_logits, gate_logits, [b0, b1], 2, None, 1.5,
                                            True, lengths)

        def args(T):
            q, k, v = attention_inputs(B=3, H=6, Hkv=2, T=T, D=5, Dv=9, L=2, dtype=torch.float32, strided=True)
            logits = [torch.randn(6, 2, requires_grad=True) for _ in range(2)]
            branches = [torch.randn(3, 6, n, 9, requires_grad=True) for n in levels(T, 2, 2)]
            return (*q, *k, v, *logits, *branches, torch.tensor([T, 0, T // 2]))

        self.assertEqual(self.graphs(call, [args(T) for T in [7, 13, 64]], bits=False), 1)

    def test_export(self):
        module, x = Head(), sequence(13).detach().contiguous()
        program = torch.export.export(module, (x,), dynamic_shapes=({1: torch.export.Dim.AUTO},))
        program = program.run_decompositions()
        self.assertIn("torch.ops.hkt.attention", str(program.graph))  # whole, not taken apart
        for T in [13, 64]:
            x = sequence(T).detach().contiguous()
            self.assertTrue(torch.equal(program.module()(x), module(x)))


class AutocastTest(unittest.TestCase):
    def test_products_low_the_rest_single(self):
        module, x = Head(), sequence(24)
        exact = copy.deepcopy(module).double()(x.double())
        with torch.autocast("cpu", torch.bfloat16):
            out = module(x)
            q, k, v = attention_inputs(dtype=torch.float32)
            self.assertEqual(hkt.attention(q, k, v, 2).dtype, torch.bfloat16)
            double = attention_inputs(dtype=torch.float64)
            self.assertEqual(hkt.attention(*double, 2).dtype, torch.float64)
            out.float().sum().backward()  # also under autocast
        self.assertEqual(out.dtype, torch.bfloat16)
        self.assertLess((out.double() - exact).abs().max(), 0.1)  # values of about 3 with 8 bits
        for name, parameter in module.named_parameters():
            self.assertEqual(parameter.grad.dtype, torch.float32, name)
            self.assertTrue(parameter.grad.isfinite().all(), name)


EXPLAIN = """
import warnings; warnings.filterwarnings("ignore")
import torch
torch.ops.load_library({library!r})
hkt = torch.ops.hkt
for dtype in [torch.float32, torch.float64]:
    for T in [6, 6, 9]:
        x = torch.randn(1, 2, T, 4, dtype=dtype, requires_grad=True)
        hkt.attention([x], [x], x, 2).sum().backward()
    y = torch.randn(1, 5, 4, dtype=dtype)
    w = [torch.randn(s, dtype=dtype, requires_grad=True) for s in [(4, 1, 3), (4,), (4, 4), (4,), (4,), (4,)]]
    hkt.downsample(y, *w, 2).sum().backward()
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    hkt.attention([x], [x], x, 2)
"""


class ExplainTest(unittest.TestCase):
    def explain(self, **env):
        done = subprocess.run([sys.executable, "-c", EXPLAIN.format(library=str(LIBRARY))], capture_output=True, text=True,
                              timeout=120, env={**os.environ, **env})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.splitlines()

    def test_each_path_is_said_once(self):
        said = self.explain(HKT_EXPLAIN="1", HKT_TARGET="SCALAR")
        fused, double = "float32 on a CPU has a kernel", "float64 has no kernel of hkt"
        heads, rows = "L=1 s=2 H=2 Hkv=2 D=4 Dv=4 causal", "d=4 k=3 s=2"
        self.assertEqual(said, [
            f"hkt: attention_forward: fused SCALAR, as {fused}: float32 on cpu, {heads}",
            f"hkt: attention_backward: fused SCALAR, as {fused}: float32 on cpu, {heads}",
            f"hkt: downsample: fused SCALAR, as {fused}: float32 on cpu, weights float32, {rows}",
            f"hkt: downsample_backward: fused SCALAR, as {fused}: float32 on cpu, weights float32, {rows}",
            f"hkt: attention_forward: composite flash, as {double}: float64 on cpu, {heads}",
            f"hkt: attention_backward: composite flash, as {double}: float64 on cpu, {heads}",
            f"hkt: downsample: composite, as {double}: float64 on cpu, weights float64, {rows}",
            f"hkt: downsample_backward: composite, as {double}: float64 on cpu, weights float64, {rows}",
            f"hkt: attention_forward: composite chunked, as flash attention is switched off: float64 on cpu, {heads}",
        ])

    def test_a_switch_sends_every_call_to_the_composites(self):
        said = self.explain(HKT_EXPLAIN="1", HKT_FUSED="0")
        self.assertEqual(len(said), 9)
        self.assertEqual([line for line in said if "fused" in line], [])
        self.assertIn("hkt: attention_forward: composite flash, as hkt's kernels are switched off: float32 on cpu, "
                      "L=1 s=2 H=2 Hkv=2 D=4 Dv=4 causal", said)

    def test_silent_unless_asked(self):
        self.assertEqual(self.explain(), [])


if __name__ == "__main__":
    unittest.main()
