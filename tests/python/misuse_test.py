"""Calls that are wrong in one way or in several, drawn at random: each works or is an error that names an argument. Nothing
ends the interpreter, hangs it or takes the memory."""

import random
import re
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch

import hkt

ERRORS = (ValueError, TypeError, RuntimeError)
SCALARS = [None, -1, 0, 1, 2, 3, 2.5, 2**40, -(2**63), 2**63 - 1, float("nan"), float("inf"), True, "2", [2], b"", torch.tensor(2)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64]


class Draw(random.Random):
    def wrong_tensor(self, x):
        """Another rank, size, type, device, layout or kind."""
        return self.choice([
            lambda: x[..., :-1],
            lambda: x[:0],
            lambda: torch.cat([x, x]),
            lambda: x[0],
            lambda: x.unsqueeze(0),
            lambda: x.reshape(-1),
            lambda: x.sum(),
            lambda: x.to(self.choice(DTYPES)),
            lambda: x.to("meta"),
            lambda: x.to_sparse(),
            lambda: torch.nested.nested_tensor([x[0], x[0, :1]] if x.dim() > 1 else [x]),
            lambda: x.transpose(0, -1),
            lambda: x.new_empty(()).expand(x.shape),
            lambda: x.new_empty(1).expand(*x.shape[:-1], 2**40),
            lambda: None,
            lambda: x.tolist(),
            lambda: [x],
            lambda: "x",
        ])()

    def wrong_list(self, xs):
        i = self.randrange(len(xs))
        return self.choice([
            lambda: [*xs[:i], self.wrong_tensor(xs[i]), *xs[i + 1 :]],
            lambda: xs[:-1],
            lambda: [*xs, xs[-1]],
            lambda: xs[::-1],
            lambda: [],
            lambda: xs[0],
            lambda: None,
        ])()

    def wrong_lengths(self, B, T):
        return self.choice([
            lambda: torch.full((B,), T + 1),
            lambda: torch.full((B,), -1),
            lambda: torch.full((B,), 2**62),
            lambda: torch.full((B + 1,), T),
            lambda: torch.full((B, 1), T),
            lambda: torch.full((B,), T).int(),
            lambda: torch.full((B,), float(T)),
            lambda: torch.full((B,), T, device="meta"),
            lambda: [T] * B,
            lambda: T,
            lambda: "all",
        ])()


def weights(d=8, k=3):
    return [torch.randn(s) for s in ((d, 1, k), (d,), (d, d), (d,), (d,), (d,))]


class MisuseTest(unittest.TestCase):
    def setUp(self):
        self.refused = self.accepted = 0

    def attempt(self, names, call, **said):
        """The call works, or its error is of the promised kinds and names an argument."""
        try:
            call()
            self.accepted += 1
        except ERRORS as error:
            self.refused += 1
            self.assertNotIsInstance(error, NotImplementedError)
            text = str(error)
            if "can't allocate memory" in text:  # the call was right, and too large: PyTorch's own error
                return
            self.assertRegex(text, "|".join(rf"\b{re.escape(name)}\b" for name in names), said)
            self.assertNotIn("INTERNAL ASSERT", text)

    def test_attention(self):
        draw = Draw(1)
        for _ in range(600):
            arguments = {"queries": [torch.randn(2, 4, n, 8) for n in (9, 5)], "keys": [torch.randn(2, 2, n, 8) for n in (9, 5)],
                         "value": torch.randn(2, 2, 9, 8), "stride": 2, "scale": None, "causal": True, "lengths": None}
            for name in draw.sample(list(arguments), draw.choice((1, 1, 2, 3))):
                if name in ("queries", "keys"):
                    arguments[name] = draw.wrong_list(arguments[name])
                elif name == "value":
                    arguments[name] = draw.wrong_tensor(arguments[name])
                elif name == "lengths":
                    arguments[name] = draw.wrong_lengths(2, 9)
                else:
                    arguments[name] = draw.choice(SCALARS)
            positional = [arguments.pop(name) for name in ("queries", "keys", "value")]
            self.attempt([*arguments, "queries", "keys", "value", "hkt::attention"], lambda: hkt.attention(*positional, **arguments))
        self.assertGreater(self.refused, 400)
        self.assertGreater(self.accepted, 10)

    def test_downsample(self):
        draw = Draw(2)
        names = ["x", "depthwise_weight", "depthwise_bias", "pointwise_weight", "pointwise_bias", "norm_weight", "norm_bias"]
        for _ in range(400):
            tensors, options = [torch.randn(2, 9, 8), *weights()], {"stride": 2, "eps": 1e-5}
            for i in draw.sample(range(9), draw.choice((1, 1, 2))):
                if i < 7:
                    tensors[i] = draw.wrong_tensor(tensors[i])
                else:
                    options[("stride", "eps")[i - 7]] = draw.choice(SCALARS)
            self.attempt([*names, *options, "hkt::downsample"], lambda: hkt.downsample(*tensors, **options))
        self.assertGreater(self.refused, 250)
        self.assertGreater(self.accepted, 10)

    def test_the_layer(self):
        draw = Draw(3)
        module, x = hkt.HKTAttention(8, 2, bias=True), torch.randn(2, 9, 8)
        for _ in range(400):
            which = draw.choice(("x", "lengths", "both"))
            y = x if which == "lengths" else draw.wrong_tensor(x)
            lengths = None if which == "x" else draw.wrong_lengths(2, 9)
            self.attempt(["x", "lengths"], lambda: module(y, lengths))
        self.assertGreater(self.refused, 250)

    def test_options(self):
        draw = Draw(4)
        names = ["d_model", "num_heads", "levels", "stride", "num_kv_heads", "kernel_size", "hybrid", "psd", "rotary", "score_gain",
                 "causal", "bias", "dropout"]
        for _ in range(600):
            options = {"d_model": 8, "num_heads": 2}
            for name in draw.sample(names, draw.choice((1, 1, 2, 3))):
                # Sizes that are right and immense are memory, not misuse.
                options[name] = draw.choice([s for s in SCALARS if not (isinstance(s, int) and s > 3)])
            self.attempt(names, lambda: hkt.HKTAttention(**options))
        self.assertGreater(self.refused, 400)
        self.assertGreater(self.accepted, 30)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
