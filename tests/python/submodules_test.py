"""What stands in a submodule's place, or hooks into it, acts: LoRA, hooks, parametrizations, pruning, quantisation."""

import copy
import pathlib
import re
import tempfile
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune

from torch.utils._python_dispatch import TorchDispatchMode

import hkt
from hkt.convolution import Depthwise, Downsample

D, T = 16, 24


class LoRA(nn.Module):
    """base(x) + B A x. Like many of its kind it shows its base's weight, which must not be taken for the whole."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.A = nn.Linear(base.in_features, rank, bias=False)
        self.B = nn.Linear(rank, base.out_features, bias=False)

    @property
    def weight(self):
        return self.base.weight

    @property
    def bias(self):
        return self.base.bias

    def forward(self, x):
        return self.base(x) + self.B(self.A(x))


class Calls(TorchDispatchMode):
    """The operators that are called."""

    def __enter__(self):
        super().__enter__()
        self.operators = []
        return self.operators

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.operators.append(operator)
        return operator(*args, **(kwargs or {}))


def layer(**options):
    torch.manual_seed(1)
    return hkt.HKTAttention(D, 4, **options)


def parts(module, kinds=(nn.Linear, Depthwise, nn.LayerNorm)):
    return [name for name, part in module.named_modules() if isinstance(part, kinds)]


def swap(module, name, new):
    parent, _, last = name.rpartition(".")
    setattr(module.get_submodule(parent), last, new)


class SubmoduleTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.x, self.lengths = torch.randn(2, T, D), torch.tensor([T, 17])

    def fused(self, module):
        """How often the operator is called."""
        with Calls() as calls:
            module(self.x)
        return calls.count(torch.ops.hkt.downsample.default)

    def test_lora_acts_everywhere_and_learns(self):
        for name in parts(layer(bias=True), nn.Linear):
            with self.subTest(name=name):
                plain, wrapped = layer(bias=True), layer(bias=True)
                lora = LoRA(wrapped.get_submodule(name))
                swap(wrapped, name, lora)
                merged = plain.get_submodule(name).weight
                with torch.no_grad():
                    merged += lora.B.weight @ lora.A.weight
                got, want = wrapped(self.x, self.lengths), plain(self.x, self.lengths)
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)  # sums in another order
                self.assertGreater((got - layer(bias=True)(self.x, self.lengths)).abs().max(), 1e-3)
                got.square().sum().backward()
                self.assertGreater(lora.B.weight.grad.abs().max(), 1e-6)
                self.assertGreater(lora.A.weight.grad.abs().max(), 1e-6)

    def test_composed_equals_fused(self):
        for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
            for stride, T in ((2, 9), (3, 9), (4, 10), (2, 1)):
                module = Downsample(D, 4, stride, dtype=dtype)
                x = torch.randn(2, T, D, dtype=dtype, requires_grad=True)
                results = []
                for call in (module, lambda x, m=module: F.gelu(m.norm(m.pointwise(m.depthwise(x))))):
                    out = call(x)
                    results.append([out, *torch.autograd.grad(out.square().sum(), [x, *module.parameters()])])
                for got, want in zip(*results):
                    torch.testing.assert_close(got, want, rtol=bound, atol=bound)

    def test_the_operator_is_used_where_nothing_hooks_in(self):
        module = layer()
        self.assertEqual(self.fused(module), 2)
        parametrizations.weight_norm(module.downsample["1"].pointwise)  # its weight says all
        self.assertEqual(self.fused(module), 2)
        handle = module.downsample["2"].norm.register_forward_hook(lambda *_: None)
        self.assertEqual(self.fused(module), 1)
        handle.remove()
        self.assertEqual(self.fused(module), 2)

    def test_hooks_act_on_every_submodule(self):
        names = parts(layer())
        self.assertEqual(len(names), 20)
        for name in names:
            with self.subTest(name=name):
                module = layer()
                want, part, seen = module(self.x), module.get_submodule(name), []
                part.register_forward_pre_hook(lambda *_: seen.append("before"))
                part.register_full_backward_hook(lambda *_: seen.append("backward"))
                handle = part.register_forward_hook(lambda m, args, out: out * out)  # not linear: the norm would hide a factor
                got = module(self.x)
                got.sum().backward()
                self.assertEqual(seen, ["before", "backward"])
                self.assertGreater((got - want).abs().max(), 1e-4)
                handle.remove()
                torch.testing.assert_close(module(self.x), want)

    def test_a_forward_of_the_instance(self):  # how accelerate hooks in
        module = layer()
        for name in parts(module):
            part = module.get_submodule(name)
            old, calls = part.forward, []
            part.forward = lambda x, old=old, calls=calls: calls.append(1) or old(x)
            module(self.x)
            self.assertEqual(calls, [1], name)

    def test_parametrizations_and_pruning(self):
        for name in parts(layer(), (nn.Linear, Depthwise)):
            with self.subTest(name=name):
                module = layer()
                want, part = module(self.x), module.get_submodule(name)
                parametrizations.weight_norm(part)
                torch.testing.assert_close(module(self.x), want)
                with torch.no_grad():
                    part.parametrizations.weight.original0 *= 2
                got = module(self.x)
                self.assertGreater((got - want).abs().max(), 1e-4)
                got.sum().backward()
                self.assertGreater(part.parametrizations.weight.original1.grad.abs().sum(), 0)

                module = layer()
                part = module.get_submodule(name)
                prune.random_unstructured(part, "weight", 0.5)
                part.weight_mask.zero_()  # by hand: it must act at the next call
                reference = layer()
                nn.init.zeros_(reference.get_submodule(name).weight)
                torch.testing.assert_close(module(self.x), reference(self.x))

    def test_dynamic_quantisation(self):
        for options in ({}, {"levels": 1, "hybrid": False}, {"psd": True}):
            module = layer(**options).eval()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                low = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, torch.qint8)
            self.assertFalse(any(type(part) is nn.Linear for part in low.modules()))
            want, got = module(self.x, self.lengths), low(self.x, self.lengths)
            self.assertFalse(torch.equal(got, want))
            self.assertLess((got - want).abs().max(), 0.05 * want.abs().max())  # 8 bits

    def test_other_kinds(self):
        module = layer()
        module.downsample["1"].pointwise = nn.Linear(D, D, bias=False)
        module.downsample["2"].norm = nn.Identity()
        module.query[1] = nn.Sequential(nn.Linear(D, D), nn.Tanh())
        module(self.x).sum().backward()
        self.assertIsNotNone(module.downsample["1"].pointwise.weight.grad)
        self.assertIsNotNone(module.query[1][0].weight.grad)
        module.query[1] = nn.Linear(D, D + 1)
        with self.assertRaisesRegex(ValueError, r"query\.1 gives \[2, 12, 17\]; it must give \[B, T, width\] with width = 16"):
            module(self.x)
        module.query[1], module.conv[0] = nn.Linear(D, D), nn.Linear(D, D // 2)
        with self.assertRaisesRegex(ValueError, r"conv\.0 gives \[2, 24, 8\]"):
            module(self.x)
        module = layer()
        module.output = nn.Linear(D, D // 2)
        with self.assertRaisesRegex(ValueError, r"output gives \[2, 24, 8\]; it must give \[2, 24, 16\] for an input of \[2, 24, 16\]"):
            module(self.x)
        with self.assertRaisesRegex(Exception, r"output gives"):
            torch.compile(module, backend="eager", fullgraph=True)(self.x)
        for other, gives in ((nn.Identity(), "[2, 24, 16]"), (nn.Flatten(), "[2, 384]"), (nn.AvgPool1d(2), "[2, 24, 8]")):
            module = layer()
            module.downsample["1"] = other
            with self.assertRaisesRegex(ValueError, rf"downsample\.1 gives {re.escape(gives)}; it must give \[2, 12, 16\]"):
                module(self.x)

    def test_compiled_with_lora_and_hooks(self):
        module = layer()
        swap(module, "downsample.1.pointwise", LoRA(module.downsample["1"].pointwise))
        torch._dynamo.reset()
        compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")
        for T in (24, 37):
            x = torch.randn(2, T, D)
            torch.testing.assert_close(compiled(x), module(x))

    def test_a_model_that_is_no_run_is_not_saved_as_one(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "run"
            for name in ("blocks.0.attention.downsample.1.pointwise", "blocks.1.ffn.0", "head"):
                model = hkt.Classifier(16, 10, 96, d_model=8)
                swap(model, name, LoRA(model.get_submodule(name)))
                with self.assertRaisesRegex(ValueError, rf"model has other parameters.*missing: {name}.*merge LoRA"):
                    hkt.save(model, target)
            self.assertFalse(target.exists())
            model = hkt.Classifier(16, 10, 96, d_model=8)
            tuned = copy.deepcopy(model)
            swap(tuned, "position", copy.deepcopy(tuned.position))
            nn.init.zeros_(tuned.position.weight)
            hkt.save(tuned, target)
            self.assertTrue((hkt.load(target).position.weight == 0).all())

    def test_an_embedding_in_the_positions_place_acts(self):
        model = hkt.Classifier(16, 10, 96, d_model=8, dropout=0.0)
        ids = torch.randint(0, 16, (2, 30))
        want, seen = model(ids), []
        model.position.register_forward_hook(lambda m, args, out: seen.append(args[0].tolist()) or out + 1)
        self.assertFalse(torch.equal(model(ids), want))
        self.assertEqual(seen, [list(range(30))])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
