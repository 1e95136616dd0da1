"""The modules: names and order of parameters, what they compute, causality and padding, gradients, tools of PyTorch, errors."""

import copy
import math
import pickle
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.utils import counters

import hkt

OPTIONS = [
    {},
    {"hybrid": False},
    {"levels": 1, "hybrid": False},
    {"levels": 1},
    {"levels": 4, "stride": 3, "num_kv_heads": 1},
    {"psd": True, "rotary": True},
    {"causal": False, "bias": True, "score_gain": 1.5, "num_kv_heads": 2, "kernel_size": 1, "stride": 2},
]


def layer(d=16, H=4, dtype=torch.float64, **options):
    """A layer whose levels and gates are not all alike."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = hkt.HKTAttention(d, H, dtype=dtype, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0, 0.3)
    return module


def plain(m, x, lengths):
    """The definition in docs/model.md, T x T and loop by loop, with nothing of hkt."""
    B, T, d = x.shape
    D, s = d // m.num_heads, m.stride
    weights = dict(m.named_parameters())
    linear = lambda y, name: F.linear(y, weights[f"{name}.weight"], weights.get(f"{name}.bias"))
    heads = lambda y, H: y.unflatten(2, (H, D)).transpose(1, 2).repeat_interleave(m.num_heads // H, 1)

    def conv(y, name, stride):
        padded = F.pad(y.transpose(1, 2), (m.kernel_size - 1, 0))
        kernel = weights[f"{name}.depthwise.weight"], weights[f"{name}.depthwise.bias"]
        return linear(F.conv1d(padded, *kernel, stride=stride, groups=d).transpose(1, 2), f"{name}.pointwise")

    def rotated(q, step):
        angles = torch.outer(torch.arange(q.size(2)).double() * step, 10000.0 ** (-torch.arange(0, D, 2).double() / D))
        a, b = q[..., 0::2], q[..., 1::2]
        return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(3)

    mixing = m.level_logits.softmax(1)
    beta = torch.ones_like(mixing) if m.gate_logits is None else m.gate_logits.sigmoid()
    score, branch, level = 0, 0, x
    for l in range(m.levels):
        if l > 0:
            normed = F.layer_norm(conv(level, f"downsample.{l}", s), (d,), *(weights[f"downsample.{l}.norm.{n}"] for n in ("weight", "bias")))
            level = F.gelu(normed)
        q = heads(linear(level, f"query.{l}"), m.num_heads)
        k = q if m.psd else heads(linear(level, f"key.{l}"), m.num_kv_heads)
        if m.rotary:
            q, k = rotated(q, s**l), rotated(k, s**l)
        up = torch.arange(T) // s**l
        weight = (mixing * beta / (mixing * beta).sum(1, keepdim=True))[:, l, None, None]
        score = score + weight * (q @ k.transpose(2, 3) / math.sqrt(D))[:, :, up][:, :, :, up]
        if m.hybrid:
            branch = branch + (mixing * (1 - beta))[:, l, None, None] * heads(conv(level, f"conv.{l}", 1), m.num_heads)[:, :, up]
    mask = torch.arange(T) < (torch.full((B,), T) if lengths is None else lengths)[:, None, None, None]
    if m.causal:
        mask = mask & torch.ones(T, T, dtype=torch.bool).tril()
    attended = (score * m.score_gain).masked_fill(~mask, -math.inf).softmax(-1) @ heads(linear(x, "value"), m.num_kv_heads)
    mixed = (mixing * beta).sum(1)[:, None, None] * attended + branch
    return linear(mixed.transpose(1, 2).flatten(2), "output")


class LayerTest(unittest.TestCase):
    def test_parameters_have_the_names_and_the_order_of_cpp(self):
        pair = lambda name: [f"{name}.weight", f"{name}.bias"]
        down = lambda name: pair(f"{name}.depthwise") + pair(f"{name}.pointwise")
        expected = ["level_logits", "gate_logits", "query.0.weight", "query.1.weight", "key.0.weight", "key.1.weight",
                    "value.weight", *pair("output"), *down("downsample.1"), *pair("downsample.1.norm"), *down("conv.0"), *down("conv.1")]
        module = hkt.HKTAttention(8, 4, 2, num_kv_heads=2, kernel_size=5)
        self.assertEqual(list(module.state_dict()), expected)
        shapes = {name: list(p.shape) for name, p in module.named_parameters()}
        self.assertEqual(shapes["key.1.weight"], [4, 8])
        self.assertEqual(shapes["level_logits"], [4, 2])
        self.assertEqual(shapes["conv.1.depthwise.weight"], [8, 1, 5])
        psd = hkt.HKTAttention(8, 4, 2, psd=True, hybrid=False, bias=True)
        self.assertEqual(list(psd.state_dict()), ["level_logits", *pair("query.0"), *pair("query.1"), *pair("value"), *pair("output"),
                                                  *down("downsample.1"), *pair("downsample.1.norm")])

    def test_start(self):
        module = hkt.HKTAttention(64, 2)
        self.assertTrue((module.level_logits == 0).all() and (module.gate_logits == 2).all())
        self.assertLessEqual(module.conv[0].depthwise.weight.abs().max(), 3**-0.5)
        self.assertLessEqual(module.query[1].weight.abs().max(), 64**-0.5)

    def test_equals_the_definition(self):
        x = torch.randn(3, 13, 16, dtype=torch.float64)
        for options in OPTIONS:
            for lengths in (None, torch.tensor([13, 5, 1])):
                with self.subTest(options=options, lengths=lengths):
                    module = layer(**options)
                    got, want = module(x, lengths), plain(module, x, lengths)
                    for b in range(3):
                        n = 13 if lengths is None else int(lengths[b])
                        # Sums of some hundred products of numbers up to 10 in double.
                        torch.testing.assert_close(got[b, :n], want[b, :n], rtol=1e-11, atol=1e-11)
                        self.assertTrue((got[b, n:] == 0).all())

    def test_one_level_is_multi_head_attention(self):
        ours, theirs = layer(levels=1, hybrid=False, bias=True), nn.MultiheadAttention(16, 4, batch_first=True, dtype=torch.float64)
        for part in ("weight", "bias"):
            rows = [getattr(module, part).data for module in (ours.query[0], ours.key[0], ours.value)]
            getattr(theirs, f"in_proj_{part}").data = torch.cat(rows)
        theirs.out_proj.load_state_dict(ours.output.state_dict())
        x = torch.randn(2, 9, 16, dtype=torch.float64)
        mask = nn.Transformer.generate_square_subsequent_mask(9, dtype=torch.float64)
        torch.testing.assert_close(ours(x), theirs(x, x, x, attn_mask=mask)[0], rtol=1e-11, atol=1e-11)

    def test_later_tokens_and_padding_change_no_bit(self):
        x, lengths = torch.randn(2, 13, 16), torch.tensor([13, 6])
        for options in OPTIONS[:6]:
            module = layer(dtype=torch.float32, **options)
            later = x.clone()
            later[:, 7:] = 1e3
            self.assertTrue(torch.equal(module(later)[:, :7], module(x)[:, :7]))
            dirty = x.clone()
            dirty[1, 6:] = math.nan
            results = []
            for inputs in (x, dirty):
                module.zero_grad()
                out = module(inputs, lengths)
                out.square().sum().backward()
                results.append([out.detach(), *(p.grad for p in module.parameters())])
            for got, want in zip(*results):
                self.assertTrue(torch.equal(got, want))

    def test_gradients_equal_differences(self):
        for options in OPTIONS:
            module = layer(8, 2, **{**options, **({"num_kv_heads": 1} if "num_kv_heads" in options else {})})
            names, values = zip(*module.named_parameters())
            call = lambda x, *p: torch.func.functional_call(module, dict(zip(names, p)), (x, torch.tensor([7, 3])))
            x = torch.randn(2, 7, 8, dtype=torch.float64, requires_grad=True)
            self.assertTrue(torch.autograd.gradcheck(call, (x, *values), fast_mode=True))

    def test_dropout_acts_on_the_output_in_training_only(self):
        module, x = layer(dropout=0.5), torch.randn(2, 9, 16, dtype=torch.float64)
        self.assertTrue(torch.equal(module.eval()(x), module(x)))
        share = (module.train()(x) == 0).double().mean()
        self.assertTrue(0.3 < share < 0.7)

    def test_empty_inputs(self):
        for options in OPTIONS:
            for shape in ((0, 5, 16), (2, 0, 16)):
                self.assertEqual(layer(**options)(torch.zeros(shape, dtype=torch.float64)).shape, shape)

    def test_what_is_allowed_is_warned_about(self):
        with self.assertWarnsRegex(UserWarning, "stride 4 is above kernel_size 3"):
            hkt.HKTAttention(8, 2, stride=4)
        with self.assertWarnsRegex(UserWarning, "level 2 has a single position"):
            hkt.HKTAttention(8, 2)(torch.randn(1, 4, 8))


class ToolsTest(unittest.TestCase):
    """What PyTorch does with modules: copies, pickles, hooks, compile, export, checkpoints, autocast, parametrizations."""

    def setUp(self):
        self.x, self.lengths = torch.randn(2, 24, 16), torch.tensor([24, 17])

    def modules(self):
        return [layer(dtype=torch.float32, **options) for options in OPTIONS[:6]]

    def test_copies_and_pickles_have_the_same_outputs(self):
        for module in self.modules():
            want = module(self.x)
            for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
                self.assertTrue(torch.equal(other(self.x), want))

    def test_submodules_are_called(self):
        module, called = layer(dtype=torch.float32), set()
        for name, part in module.named_modules():
            part.register_forward_hook(lambda *_, name=name: called.add(name))
        module(self.x)
        self.assertLessEqual({"query.0", "query.2", "key.0", "key.2", "value", "output", "downsample.1", "conv.0.pointwise"}, called)

    def test_parametrizations(self):
        module = layer(dtype=torch.float32)
        for part in (module.query[1], module.downsample["1"].pointwise, module.conv[0].depthwise):
            nn.utils.parametrizations.weight_norm(part)
        module(self.x).sum().backward()
        self.assertTrue(module.query[1].parametrizations.weight.original1.grad.abs().sum() > 0)

    def test_compiled_and_exported_equal_eager(self):
        for module in (layer(dtype=torch.float32), layer(dtype=torch.float32, psd=True, rotary=True, hybrid=False)):
            torch._dynamo.reset()
            counters.clear()
            compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")
            for T in (24, 37, 64):
                x = torch.randn(2, T, 16)
                torch.testing.assert_close(compiled(x, self.lengths), module(x, self.lengths))
            self.assertEqual(counters["stats"]["unique_graphs"], 1)
            exported = torch.export.export(module, (self.x,), dynamic_shapes=({1: torch.export.Dim.AUTO},)).module()
            torch.testing.assert_close(exported(x), module(x))

    def test_checkpointing(self):
        for module in self.modules():
            grads = []
            for call in (module, lambda x: torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)):
                module.zero_grad()
                call(self.x).square().sum().backward()
                grads.append([p.grad.clone() for p in module.parameters()])
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(*grads)))

    def test_autocast(self):
        for module in self.modules():
            want = module(self.x, self.lengths)
            for x in (self.x, self.x.bfloat16()):
                with torch.autocast("cpu", torch.bfloat16):
                    got = module(x, self.lengths)
                self.assertEqual(got.dtype, torch.bfloat16)
                self.assertLess((got - want).abs().max(), 0.05 * want.abs().max())  # some products with 8 bits each
            got.float().sum().backward()
            self.assertTrue(all(p.grad.isfinite().all() for p in module.parameters()))
        with torch.autocast("cpu", torch.bfloat16):
            hkt.Classifier(5, 3, 24, dropout=0.0)(torch.zeros(2, 24, dtype=torch.int64)).sum().backward()

    def test_rotary_table_survives_inference_mode_growth_and_types(self):
        module = layer(dtype=torch.float32, rotary=True)
        with torch.inference_mode():
            module(self.x)
        module(self.x).sum().backward()
        longer = torch.cat([self.x, self.x], 1)
        fresh = layer(dtype=torch.float32, rotary=True)
        self.assertTrue(torch.equal(module(longer), fresh(longer)))
        self.assertEqual(module.double()(self.x.double()).dtype, torch.float64)
        self.assertEqual(module.float().to("meta")(self.x.to("meta")).shape, self.x.shape)


class ModelTest(unittest.TestCase):
    def test_block_is_its_formula(self):
        block = hkt.TransformerBlock(16, 4, 32, dropout=0.5).eval()
        x = torch.randn(2, 9, 16)
        y = x + block.attention(block.attention_norm(x))
        self.assertTrue(torch.equal(block(x), y + block.ffn[1](F.gelu(block.ffn[0](block.ffn_norm(y))))))
        self.assertEqual(list(block.state_dict())[:3], ["attention_norm.weight", "attention_norm.bias", "attention.level_logits"])
        self.assertEqual(list(block.state_dict())[-4:], ["ffn.0.weight", "ffn.0.bias", "ffn.1.weight", "ffn.1.bias"])
        self.assertFalse(torch.equal(block.train()(x), block(x)))

    def test_classifier_ignores_padding(self):
        torch.manual_seed(1)
        for options in ({}, {"rotary": True}):
            model = hkt.Classifier(11, 3, 20, d_model=16, **options).eval()
            ids, lengths = torch.randint(0, 11, (3, 20)), torch.tensor([20, 7, 0])
            want = model(ids, lengths)
            ids[1, 7:], ids[2] = -5, 99
            self.assertTrue(torch.equal(model(ids, lengths), want))
            torch.testing.assert_close(model(ids[1:2, :7]), want[1:2])
            self.assertTrue(torch.equal(want[2], model.head(torch.zeros(16))))

    def test_classifier_learns(self):
        torch.manual_seed(1)
        model = hkt.Classifier(4, 2, 12, d_model=16, dropout=0.0)
        labels = torch.arange(64) % 2
        ids = torch.randint(0, 3, (64, 12)) + labels.unsqueeze(1)  # 0 ... 2 and 1 ... 3
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(30):
            loss = F.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.assertLess(loss.item(), 0.1)

    def test_classifier_names(self):
        model = hkt.Classifier(11, 3, 20)
        names = list(model.state_dict())
        self.assertEqual(names[:2] + names[-4:], ["embedding.weight", "position.weight", "final_norm.weight", "final_norm.bias",
                                                  "head.weight", "head.bias"])
        self.assertAlmostEqual(model.embedding.weight.std().item(), 0.02, delta=0.005)
        self.assertNotIn("position.weight", hkt.Classifier(11, 3, rotary=True).state_dict())


class OperatorTest(unittest.TestCase):
    def test_wrappers_are_the_operators(self):
        q = [torch.randn(2, 4, n, 8) for n in (13, 7)]
        k = [torch.randn(2, 2, n, 8) for n in (13, 7)]
        v, lengths = torch.randn(2, 2, 13, 5), torch.tensor([13, 2])
        want = torch.ops.hkt.attention(q, k, v, 2, 0.5, False, lengths)
        self.assertTrue(torch.equal(hkt.attention(q, k, v, scale=0.5, causal=False, lengths=lengths), want))
        self.assertTrue(torch.equal(hkt.attention(q, k, v), torch.ops.hkt.attention(q, k, v, 2)))
        x = [torch.randn(s) for s in ((2, 7, 8), (8, 1, 3), (8,), (8, 8), (8,), (8,), (8,))]
        self.assertTrue(torch.equal(hkt.downsample(*x, stride=3, eps=1e-3), torch.ops.hkt.downsample(*x, 3, 1e-3)))


class MisuseTest(unittest.TestCase):
    """Every message names the argument, what it got and what it needs."""

    def refused(self, kind, message, call):
        with self.assertRaisesRegex(kind, message):
            call()

    def test_options(self):
        make = lambda *args, **options: lambda: hkt.HKTAttention(*(args or (8, 2)), **options)
        for kind, message, call in [
            (ValueError, "levels is 0; it must be at least 1", make(levels=0)),
            (ValueError, "stride is 1; it must be at least 2", make(stride=1)),
            (ValueError, "d_model is 9; it must be a multiple of num_heads = 2", make(9, 2)),
            (ValueError, "num_heads is 0; it must be at least 1", make(8, 0)),
            (ValueError, "num_kv_heads is 3; it must divide num_heads = 4", make(8, 4, num_kv_heads=3)),
            (ValueError, "psd needs num_kv_heads = num_heads; num_kv_heads is 1, num_heads is 2", make(psd=True, num_kv_heads=1)),
            (ValueError, "rotary needs an even head width; d_model / num_heads is 3", make(6, 2, rotary=True)),
            (ValueError, "kernel_size is 0; it must be at least 1", make(kernel_size=0)),
            (ValueError, "score_gain is nan; it must be above 0 and finite", make(score_gain=math.nan)),
            (ValueError, "dropout is 1.0; it must be at least 0 and below 1", make(dropout=1)),
            (ValueError, "levels is 65; it must be at most 16", make(levels=65)),
            (ValueError, "stride is 2199023255552; it must be at most 1024", make(stride=2**41)),
            (ValueError, "d_model is 1099511627776; it must be at most 65536", make(2**40, 2, rotary=True)),
            (ValueError, "num_heads is 8192; it must be at most 4096", make(8192, 8192)),
            (ValueError, "num_kv_heads is 8192; it must be at most 4096", make(num_kv_heads=8192)),
            (ValueError, "kernel_size is 1025; it must be at most 1024", make(kernel_size=1025)),
            (ValueError, "layers is 1025; it must be at most 1024", lambda: hkt.Classifier(8, 2, 9, layers=1025)),
            (ValueError, "score_gain is an integer that no float holds; it must be a finite number", make(score_gain=10**400)),
            (TypeError, "dtype is torch.complex64; it must be torch.float32", make(dtype=torch.complex64)),
            (TypeError, "dtype is torch.int64; it must be torch.float32", make(dtype=torch.int64)),
            (TypeError, "dtype is torch.float8_e5m2; it must be torch.float32", make(dtype=torch.float8_e5m2)),
            (TypeError, "dtype is 'float32' of type str; it must be torch.float32", make(dtype="float32")),
            (ValueError, "device is 'toaster'; it must be a device", make(device="toaster")),
            (TypeError, "dtype is torch.int8", lambda: hkt.TransformerBlock(8, 2, 8, dtype=torch.int8)),
            (TypeError, "dtype is torch.int8", lambda: hkt.Classifier(8, 2, 9, dtype=torch.int8)),
            (TypeError, "levels is 2.5 of type float; it must be an integer", make(levels=2.5)),
            (TypeError, "stride is True; it must be an integer", make(stride=True)),
            (TypeError, "hybrid is 1 of type int; it must be True or False", make(hybrid=1)),
            (TypeError, "score_gain is '1' of type str; it must be a number", make(score_gain="1")),
            (TypeError, "d_ff is None of type NoneType; it must be an integer", lambda: hkt.TransformerBlock(8, 2, None)),
            (TypeError, "unexpected keyword argument 'width'", lambda: hkt.TransformerBlock(8, 2, 8, width=1)),
            (ValueError, "seq_len is None; learned positions need", lambda: hkt.Classifier(8, 2)),
            (ValueError, "classes is 0; it must be at least 1", lambda: hkt.Classifier(8, 0, 9)),
        ]:
            self.refused(kind, message, call)

    def test_inputs(self):
        module, x = hkt.HKTAttention(8, 2), torch.randn(2, 9, 8)
        eight = x.to(torch.float8_e4m3fn)
        model, ids = hkt.Classifier(5, 2, 9, d_model=8), torch.zeros(2, 9, dtype=torch.int64)
        for kind, message, call in [
            (ValueError, r"x has shape \[9, 8\]; it must be \[B, T, d_model = 8\]", lambda: module(x[0])),
            (ValueError, r"x has shape \[2, 9, 7\]", lambda: module(x[:, :, :7])),
            (TypeError, "x is torch.float64; it must be torch.float32", lambda: module(x.double())),
            (TypeError, "x is torch.int64; it must be torch.float32", lambda: module(x.long())),
            (ValueError, "x is on meta; it must be on cpu", lambda: module(x.to("meta"))),
            (TypeError, "x is a list; it must be a tensor", lambda: module([[1.0]])),
            (TypeError, r"lengths is a list; it must be a tensor of type int64 and shape \[B\]", lambda: module(x, [9, 3])),
            (TypeError, "lengths is torch.int32; it must be torch.int64", lambda: module(x, torch.tensor([9, 3]).int())),
            (ValueError, r"lengths has shape \[1\]; it must be \[B\] = \[2\]", lambda: module(x, torch.tensor([9]))),
            (ValueError, "lengths.*10", lambda: module(x, torch.tensor([9, 10]))),
            (ValueError, "lengths.*-1", lambda: module(x, torch.tensor([9, -1]))),
            (ValueError, "lengths is on meta; it must be on cpu", lambda: module(x, torch.tensor([9, 3], device="meta"))),
            (ValueError, r"ids has shape \[9\]; it must be \[B, T\]", lambda: model(ids[0])),
            (TypeError, "ids is torch.float32; it must be torch.int64", lambda: model(ids.float())),
            (TypeError, "ids is a list", lambda: model([[1]])),
            (ValueError, r"ids has the value 5; it must be 0 ... 4", lambda: model(ids + 5)),
            (ValueError, "ids has the value -1", lambda: model(ids - 1)),
            (ValueError, "ids has T = 10 tokens; the model has learned positions for 9", lambda: model(torch.zeros(1, 10, dtype=torch.int64))),
            (ValueError, r"queries\[0\]", lambda: hkt.attention([x], [x], x)),
            *[(TypeError, f"^causal is {value!r}.* of type {type(value).__name__}; it must be True or False",
               lambda value=value: hkt.attention([x[None]], [x[None]], x[None], causal=value)) for value in (None, 2, 1.0)],
            (TypeError, "^causal is tensor.True.", lambda: hkt.attention([x[None]], [x[None]], x[None], causal=torch.tensor(True))),
            *[(ValueError, f"^scale is {value}; it must be finite",
               lambda value=value: hkt.attention([x[None]], [x[None]], x[None], scale=value)) for value in (math.nan, math.inf, -math.inf)],
            (ValueError, "^scale is nan", lambda: hkt.attention([x[None]], [x[None]], x[None], scale=torch.tensor(math.nan))),
            (ValueError, "^scale is an integer that no float holds", lambda: hkt.attention([x[None]], [x[None]], x[None], scale=10**400)),
            (TypeError, "^scale is True", lambda: hkt.attention([x[None]], [x[None]], x[None], scale=True)),
            *[(ValueError, f"^eps is {value}; it must be {wanted}", lambda value=value: hkt.downsample(x, x, x, x, x, x, x, eps=value))
              for value, wanted in ((math.nan, "finite"), (math.inf, "finite"), (-1e-3, "at least 0"))],
            (TypeError, r"^queries\[0\] is torch.float8_e4m3fn; it must be torch.float32, torch.float64, torch.bfloat16 or torch.float16",
             lambda: hkt.attention([eight[None]], [x[None]], x[None])),
            (TypeError, r"^keys\[1\] is torch.float8_e4m3fn", lambda: hkt.attention([x[None]], [x[None], eight[None]], x[None])),
            (TypeError, "^value is torch.float8_e4m3fn", lambda: hkt.attention([x[None]], [x[None]], eight[None])),
            (TypeError, "^x is torch.float8_e4m3fn", lambda: hkt.downsample(eight, x, x, x, x, x, x)),
            (TypeError, "^norm_bias is torch.float8_e4m3fn", lambda: hkt.downsample(x, x, x, x, x, x, eight)),
            (ValueError, "stride is 1", lambda: hkt.attention([x[None]], [x[None]], x[None], stride=1)),
            (RuntimeError, "queries", lambda: hkt.attention("x", [x], x)),
            (RuntimeError, "stride", lambda: hkt.attention([x[None]], [x[None]], x[None], stride="2")),
            (TypeError, "norm_bias is None; it must be a tensor", lambda: hkt.downsample(x, x, x, x, x, x, None)),
            (TypeError, "value is None; it must be a tensor", lambda: hkt.attention([x[None]], [x[None]], None)),
            (ValueError, "depthwise_weight", lambda: hkt.downsample(x, x[0], x, x, x, x, x)),
        ]:
            self.refused(kind, message, call)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
