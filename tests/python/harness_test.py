"""The package under other people's harnesses: vmap, threads at once, forked workers, what an import and a call cost."""

import concurrent.futures
import subprocess
import sys
import time
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import hkt

D, T = 16, 24
OPTIONS = [{}, {"hybrid": False, "rotary": True}, {"levels": 1, "hybrid": False}, {"psd": True}]


def layer(**options):
    torch.manual_seed(1)
    module = hkt.HKTAttention(D, 4, **options)
    for logits in (module.level_logits, module.gate_logits):
        if logits is not None:
            nn.init.normal_(logits)
    return module


class VmapTest(unittest.TestCase):
    def test_over_inputs(self):
        x, lengths = torch.randn(2, 5, T, D), torch.tensor([[T, 3, 0, 9, 1], [4, T, T, 2, 8]])
        for options in OPTIONS:
            module = layer(**options)
            for dim in (0, 1, 2):
                mapped = x.movedim(0, dim)
                got = torch.vmap(module, in_dims=(dim, 0))(mapped, lengths)
                for g, a, n in zip(got, x, lengths):
                    torch.testing.assert_close(g, module(a, n))
                got = torch.vmap(module, in_dims=(dim, None))(mapped, lengths[0])
                torch.testing.assert_close(got[1], module(x[1], lengths[0]))
            module.zero_grad()
            torch.vmap(module)(x).square().sum().backward()
            grads = [p.grad.clone() for p in module.parameters()]
            module.zero_grad()
            module(x.flatten(0, 1)).square().sum().backward()
            for got, parameter in zip(grads, module.parameters()):
                torch.testing.assert_close(got, parameter.grad, rtol=1e-4, atol=1e-4)
        nested = torch.vmap(torch.vmap(module))(x.unsqueeze(2))
        torch.testing.assert_close(nested[1, 3], module(x[1, 3:4]))
        self.assertEqual(torch.vmap(module)(x[:0]).shape, (0, 5, T, D))

    def test_over_weights(self):  # an ensemble
        modules = [layer(), layer()]
        for module in modules:
            for parameter in module.parameters():
                nn.init.normal_(parameter, 0, 0.3)
        stacked, _ = torch.func.stack_module_state(modules)
        x = torch.randn(3, T, D)
        call = lambda weights, x: torch.func.functional_call(modules[0], weights, (x,))
        for got, module in zip(torch.vmap(call, (0, None))(stacked, x), modules):
            torch.testing.assert_close(got, module(x))

    def test_of_the_operators(self):
        q = [torch.randn(5, 2, 4, n, 8) for n in (13, 7)]
        k = [torch.randn(2, 2, n, 8) for n in (13, 7)]
        v = torch.randn(5, 2, 2, 13, 3)
        for got, a, b, w in zip(torch.vmap(lambda q, v: hkt.attention(q, k, v))(q, v), *q, v):
            torch.testing.assert_close(got, hkt.attention([a, b], k, w))

    def test_of_gradients_is_a_clear_error(self):
        module, x = layer(), torch.randn(2, 5, T, D)
        with self.assertRaisesRegex(RuntimeError, "functorch"):
            torch.func.grad(lambda x: module(x).sum())(x[0])
        with self.assertRaisesRegex(RuntimeError, "functorch"):
            torch.vmap(torch.func.grad(lambda x: module(x[None]).sum()))(x[0])


class ThreadsTest(unittest.TestCase):
    def test_a_module_shared_by_threads_gives_the_bits_of_one(self):
        for options in OPTIONS:
            module = layer(**options)
            inputs = [torch.randn(2, n, D) for n in (24, 9, 64, 33)] * 3

            def work(x):
                y = x.clone().requires_grad_(True)
                out = module(y)
                return [out.detach(), *torch.autograd.grad(out.square().sum(), [y, *module.parameters()])]

            want = [work(x) for x in inputs]
            if module._rotary:
                module._rotary[0]._turns = None  # made again, by several at once
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for got, expected in zip(pool.map(work, inputs), want):
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(got, expected)))


class Attended(Dataset):
    """Items that a worker process computes with a layer that it inherited."""

    def __init__(self, module, x):
        self.module, self.x = module, x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        y = self.x[i : i + 1].clone().requires_grad_(True)
        out = self.module(y)[0]
        return out.detach(), torch.autograd.grad(out.square().sum(), y)[0][0]


class ForkTest(unittest.TestCase):
    def test_workers_after_the_parent_used_its_threads(self):
        module, x = layer(), torch.randn(8, 512, D)
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        self.addCleanup(torch.set_num_threads, before)
        module(x).sum().backward()  # the pool is up, and 8 * 512 rows are enough for it
        data = Attended(module, x)
        outs, grads = zip(*DataLoader(data, 2, num_workers=2, multiprocessing_context="fork", timeout=60))
        want = [data[i] for i in range(8)]
        self.assertTrue(torch.equal(torch.cat(outs), torch.stack([w[0] for w in want])))
        self.assertTrue(torch.equal(torch.cat(grads), torch.stack([w[1] for w in want])))
        module(x).sum().backward()


class CostTest(unittest.TestCase):
    def test_an_import_costs_little_over_that_of_torch(self):
        code = "import torch, time; t = time.perf_counter(); import hkt; print(time.perf_counter() - t)"
        seconds = [float(subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True).stdout)
                   for _ in range(3)]
        self.assertLess(min(seconds), 0.3)

    def test_the_wrapper_costs_little_over_the_operator(self):
        q = k = [torch.randn(1, 1, 2, 4)]
        operator = torch.ops.hkt.attention.default
        best = {}
        for _ in range(20):
            for name, call in (("ours", lambda: hkt.attention(q, k, q[0])), ("operator", lambda: operator(q, k, q[0], 2, None, True, None))):
                start = time.perf_counter()
                for _ in range(200):
                    call()
                best[name] = min(best.get(name, 1e9), (time.perf_counter() - start) / 200)
        self.assertLess(best["ours"] - best["operator"], 20e-6)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
