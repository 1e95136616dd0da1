"""HKT in place of nn.MultiheadAttention: the same outputs, the same call, levels that learn, and what is refused."""

import copy
import math
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch
from torch import nn

import hkt

T, D = 13, 16
CLOSE = {"rtol": 1e-10, "atol": 1e-10}  # sums of some hundred products in double


def attention(**options):
    torch.manual_seed(1)
    mha = nn.MultiheadAttention(D, 4, dtype=torch.float64, **options)
    for parameter in mha.parameters():  # biases start at 0
        nn.init.normal_(parameter, 0, 0.3)
    return mha


def causal_mask():
    return nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)


class FromMhaTest(unittest.TestCase):
    def test_outputs_are_the_old_ones(self):
        x = torch.randn(2, T, D, dtype=torch.float64)
        for bias in (True, False):
            for causal in (True, False):
                for levels in (1, 3):
                    mha = attention(bias=bias, batch_first=True)
                    layer = hkt.HKTAttention.from_mha(mha, levels, causal=causal)
                    want, _ = mha(x, x, x, attn_mask=causal_mask() if causal else None)
                    torch.testing.assert_close(layer(x), want, **CLOSE)

    def test_every_level_learns(self):
        layer = hkt.HKTAttention.from_mha(attention())
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        for _ in range(2):  # in the first step coarse keys meet queries of 0
            optimizer.zero_grad()
            layer(torch.randn(2, T, D, dtype=torch.float64)).square().sum().backward()
            optimizer.step()
        for name, parameter in layer.named_parameters():
            if name not in ("key.0.bias", "key.1.bias", "key.2.bias"):  # the same for every key: softmax does not see them
                self.assertGreater(parameter.grad.abs().max(), 1e-9, name)

    def test_mode_type_and_dropout(self):
        with self.assertWarnsRegex(UserWarning, "dropout 0.5 moves from the attention weights to the layer's output"):
            layer = hkt.HKTAttention.from_mha(attention(dropout=0.5).eval())
        self.assertEqual((layer.training, layer.dropout, layer.value.weight.dtype), (False, 0.5, torch.float64))

    def test_what_is_refused(self):
        for kind, message, call in [
            (TypeError, "mha is a Linear", lambda: hkt.HKTAttention.from_mha(nn.Linear(1, 1))),
            (ValueError, "mha has kdim = 8 and vdim = 16; they must be embed_dim = 16", lambda: hkt.HKTAttention.from_mha(attention(kdim=8))),
            (ValueError, "add_bias_kv", lambda: hkt.HKTAttention.from_mha(attention(add_bias_kv=True))),
            (ValueError, "add_zero_attn", lambda: hkt.HKTAttention.from_mha(attention(add_zero_attn=True))),
            (ValueError, "levels is 0", lambda: hkt.HKTAttention.from_mha(attention(), 0)),
        ]:
            with self.assertRaisesRegex(kind, message):
                call()


class AdapterTest(unittest.TestCase):
    def test_call_is_that_of_pytorch(self):
        batch = torch.randn(2, T, D, dtype=torch.float64)
        padding = torch.arange(T) >= torch.tensor([T, 6]).unsqueeze(1)
        as_float = torch.zeros(2, T, dtype=torch.float64).masked_fill(padding, -math.inf)
        for batch_first in (True, False):
            old = attention(batch_first=batch_first)
            new = hkt.replace_attention(old)
            x = batch if batch_first else batch.transpose(0, 1)
            for mask in (None, causal_mask(), causal_mask() < 0, torch.zeros(T, T, dtype=torch.bool), (causal_mask() < 0).expand(8, T, T)):
                for pad in (None, padding, as_float):
                    if mask is not None and pad is not None and mask.dtype != pad.dtype:
                        continue
                    want = old(x, x, x, key_padding_mask=pad, attn_mask=mask)[0]
                    got, weights = new(x, x, x, key_padding_mask=pad, attn_mask=mask, need_weights=False)
                    self.assertIsNone(weights)
                    self.assertEqual(got.shape, want.shape)
                    if pad is not None:
                        keep = ~(pad if pad.dtype == torch.bool else pad < 0)
                        keep = keep if batch_first else keep.t()
                        self.assertTrue((got[~keep] == 0).all())
                        got, want = got[keep], want[keep]
                    torch.testing.assert_close(got, want, **CLOSE)
            one = batch[0]
            torch.testing.assert_close(new(one, one, one, is_causal=True)[0], old(one, one, one, attn_mask=causal_mask())[0], **CLOSE)
            pad = padding[1]
            torch.testing.assert_close(new(one, one, one, pad)[0][:6], old(one, one, one, pad)[0][:6], **CLOSE)
            self.assertIs(new.out_proj, new.attention.output)
            torch.testing.assert_close(new.out_proj.weight, old.out_proj.weight)
            for name in ("embed_dim", "num_heads", "head_dim", "dropout", "batch_first", "kdim", "vdim", "training"):
                self.assertEqual(getattr(new, name), getattr(old, name))

    def test_weights_are_those_of_pytorch_where_they_are_asked_for(self):
        batch = torch.randn(2, T, D, dtype=torch.float64)
        padding = torch.arange(T) >= torch.tensor([T, 6]).unsqueeze(1)
        for batch_first in (True, False):
            old = attention(batch_first=batch_first)
            new = hkt.replace_attention(old)
            x = batch if batch_first else batch.transpose(0, 1)
            for average in (True, False):
                for call in ({}, {"attn_mask": causal_mask() < 0}, {"key_padding_mask": padding}):
                    _, want = old(x, x, x, average_attn_weights=average, **call)
                    out, got = new(x, x, x, need_weights=True, average_attn_weights=average, **call)
                    self.assertEqual(got.shape, want.shape)
                    if "key_padding_mask" in call:
                        want = want.masked_fill((padding[:, :, None] if average else padding[:, None, :, None]), 0)
                    torch.testing.assert_close(got, want, **CLOSE)
                one = batch[0]
                want = old(one, one, one, average_attn_weights=average)[1]
                torch.testing.assert_close(new(one, one, one, need_weights=True, average_attn_weights=average)[1], want, **CLOSE)
        with self.assertWarnsRegex(UserWarning, "need_weights is not given: HKT returns None"):
            self.assertIsNone(new(x, x, x)[1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertIsNone(new(x, x, x, need_weights=False)[1])

    def test_weights_are_what_the_layer_does_with_its_values(self):
        for levels, kv in ((1, 4), (3, 2)):
            layer = hkt.HKTAttention(D, 4, levels, num_kv_heads=kv, hybrid=False, rotary=True, score_gain=3.0)
            nn.init.normal_(layer.level_logits)
            x, lengths = torch.randn(2, T, D), torch.tensor([T, 6])
            weights = layer.weights(x, lengths)
            values = layer.value(x).unflatten(2, (kv, D // 4)).transpose(1, 2).repeat_interleave(4 // kv, 1)
            out = layer.output((weights @ values).transpose(1, 2).flatten(2))
            got = layer(x, lengths)
            torch.testing.assert_close(got[0], out[0])
            torch.testing.assert_close(got[1, :6], out[1, :6])
            self.assertTrue((weights[1, :, 6:] == 0).all() and (weights.triu(1) == 0).all())
            weights.square().sum().backward()
            self.assertGreater(layer.level_logits.grad.abs().max() if levels > 1 else 1, 0)
        with self.assertRaisesRegex(ValueError, "hybrid=True: its heads mix attention with convolutions"):
            hkt.HKTAttention(D, 4).weights(x)

    def test_compiled(self):
        x = torch.randn(2, T, D, dtype=torch.float64)
        new = hkt.replace_attention(attention(batch_first=True))
        call = torch.compile(lambda x, pad: new(x, x, x, pad, False, is_causal=True)[0], fullgraph=True, backend="aot_eager")
        right = torch.arange(T) >= torch.tensor([T, 6]).unsqueeze(1)
        torch.testing.assert_close(call(x, right), new(x, x, x, right, is_causal=True)[0])
        with self.assertRaisesRegex(RuntimeError, "must be on the right only"):
            call(x, right.flip(1))

    def test_what_is_refused(self):
        x = torch.randn(2, T, D, dtype=torch.float64)
        new = hkt.replace_attention(attention(batch_first=True))
        left = torch.arange(T) < torch.tensor([0, 3]).unsqueeze(1)
        window = torch.ones(T, T, dtype=torch.bool).triu(3)
        for kind, message, call in [
            (ValueError, "no cross-attention", lambda: new(x, x.clone(), x)),
            (ValueError, "padding before a valid token; it must be on the right only", lambda: new(x, x, x, left)),
            (ValueError, r"key_padding_mask has shape \[13, 2\]; it must be \[B, T\] = \[2, 13\]", lambda: new(x, x, x, left.t())),
            (TypeError, "key_padding_mask is torch.int64", lambda: new(x, x, x, left.long())),
            (ValueError, "attn_mask is neither causal nor without effect", lambda: new(x, x, x, attn_mask=window)),
            (ValueError, "attn_mask adds to the scores", lambda: new(x, x, x, attn_mask=torch.randn(T, T))),
            (ValueError, r"attn_mask has shape \[13, 12\]", lambda: new(x, x, x, attn_mask=window[:, 1:])),
            (ValueError, r"attn_mask has shape \[5, 13, 13\].*B \* H = 8", lambda: new(x, x, x, attn_mask=(causal_mask() < 0).expand(5, T, T))),
            (TypeError, "attn_mask is a list; it must be a tensor", lambda: new(x, x, x, attn_mask=[1])),
            (TypeError, "key_padding_mask is a list; it must be a tensor", lambda: new(x, x, x, [1])),
            (TypeError, "is_causal is 'no' of type str; it must be True or False", lambda: new(x, x, x, is_causal="no")),
            (TypeError, "need_weights is 2 of type int", lambda: new(x, x, x, need_weights=2)),
            (AttributeError, "out_proj can only be read; set attention.output", lambda: setattr(new, "out_proj", nn.Linear(D, D))),
            (ValueError, r"query has shape \[13\]", lambda: new(*[x[0, :, 0]] * 3)),
        ]:
            with self.assertRaisesRegex(kind, message):
                call()


class ReplaceTest(unittest.TestCase):
    def encoder(self, **options):
        torch.manual_seed(1)
        layer = nn.TransformerEncoderLayer(D, 4, 32, 0.0, dtype=torch.float64, **options)
        return nn.TransformerEncoder(layer, 2)

    def test_encoder_in_training_and_evaluation(self):
        padding = torch.arange(T) >= torch.tensor([T, 6]).unsqueeze(1)
        for options in ({"batch_first": True}, {"batch_first": False}, {"batch_first": True, "norm_first": True, "bias": False}):
            old = self.encoder(**options)
            new = hkt.replace_attention(copy.deepcopy(old))
            self.assertEqual(sum(isinstance(m, hkt.HKTAttention) for m in new.modules()), 2)
            x = torch.randn(2, T, D, dtype=torch.float64)
            x = x if options["batch_first"] else x.transpose(0, 1)
            for mode in (True, False):
                for grad in (True, False):
                    with torch.set_grad_enabled(grad):
                        for call in ({}, {"mask": causal_mask(), "is_causal": True}, {"mask": causal_mask()}, {"src_key_padding_mask": padding}):
                            got, want = new.train(mode)(x, **call), old.train(mode)(x, **call)
                            if "src_key_padding_mask" in call:
                                keep = ~padding if options["batch_first"] else ~padding.t()
                                got, want = got[keep], want[keep]
                            torch.testing.assert_close(got, want, **CLOSE)

    def test_cross_attention_stays(self):
        model = nn.Transformer(D, 4, 1, 1, 32, 0.0, batch_first=True, dtype=torch.float64)
        x, y = torch.randn(2, T, D, dtype=torch.float64), torch.randn(2, T, D, dtype=torch.float64)
        want = model(x, y, tgt_mask=causal_mask())
        hkt.replace_attention(model)
        self.assertIsInstance(model.decoder.layers[0].multihead_attn, nn.MultiheadAttention)
        self.assertIsInstance(model.decoder.layers[0].self_attn, hkt.MultiheadAttention)
        torch.testing.assert_close(model(x, y, tgt_mask=causal_mask()), want, **CLOSE)

    def test_choice_and_sharing(self):
        shared = attention()
        model = nn.ModuleDict({"a": shared, "b": shared, "c": attention(kdim=8), "d": attention()})
        hkt.replace_attention(model, only=lambda name: name != "d", levels=2)
        self.assertIs(model["a"], model["b"])
        self.assertEqual([type(model[n]) is nn.MultiheadAttention for n in "abcd"], [False, False, True, True])
        self.assertEqual(model["a"].attention.levels, 2)
        with self.assertRaisesRegex(ValueError, r"model has no nn\.MultiheadAttention"):
            hkt.replace_attention(nn.Linear(1, 1))

    def test_subclasses_stay_and_are_named(self):
        class Own(nn.MultiheadAttention):
            def forward(self, *arguments, **options):
                out, weights = super().forward(*arguments, **options)
                return -out, weights

        quantizable = torch.ao.nn.quantizable.MultiheadAttention(D, 4)
        model = nn.ModuleDict({"a": attention(), "b": Own(D, 4), "c": quantizable})
        kinds = [type(model[n]) for n in "bc"]
        with self.assertWarnsRegex(UserWarning, r"may compute something else and stay: b \(.*Own\), c \(torch.ao.nn.quantizable.*\)$"):
            hkt.replace_attention(model)
        self.assertEqual([type(model[n]) for n in "abc"], [hkt.MultiheadAttention, *kinds])
        for lone, name in ((nn.ModuleList([Own(D, 4)]), "0"), (Own(D, 4), "the model")):
            with self.assertRaisesRegex(ValueError, rf"model has no nn\.MultiheadAttention.*; subclasses.*: {name} \(.*Own\)"):
                hkt.replace_attention(lone)
        with self.assertRaisesRegex(TypeError, "mha is a .*Own, a subclass that may compute something else"):
            hkt.HKTAttention.from_mha(Own(D, 4))

    def test_what_would_be_lost_is_refused_by_name(self):
        for register in ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
                         "register_full_backward_pre_hook"):
            model = nn.ModuleDict({"a": attention()})
            handle = getattr(model["a"], register)(lambda *_: None)
            with self.assertRaisesRegex(ValueError, "^a: mha has hooks or a forward of its own, which would be lost"):
                hkt.replace_attention(model)
            handle.remove()
            hkt.replace_attention(model)
        model = nn.ModuleDict({"a": attention()})
        model["a"].forward = lambda *_: None
        with self.assertRaisesRegex(ValueError, "^a: mha has hooks or a forward of its own"):
            hkt.replace_attention(model)
        for part, name, want in ((lambda m: m, "in_proj_weight", "in_proj_weight"), (lambda m: m.out_proj, "weight", "out_proj.weight")):
            model = nn.ModuleDict({"a": attention()})
            nn.utils.parametrizations.weight_norm(part(model["a"]), name)
            with self.assertRaisesRegex(ValueError, rf"^a: mha has parametrizations, which would be lost, of {want};"):
                hkt.replace_attention(model)
            nn.utils.parametrize.remove_parametrizations(part(model["a"]), name)
            hkt.replace_attention(model)

    def test_shared_parameters_are_named(self):
        model = nn.ModuleDict({"a": attention(), "b": attention(), "c": nn.Linear(D, D)})
        model["b"].in_proj_weight = model["a"].in_proj_weight
        model["c"].weight = model["b"].out_proj.weight
        wanted = r"copies from here on: a.in_proj_weight = b.in_proj_weight; b.out_proj.weight = c.weight$"
        with self.assertWarnsRegex(UserWarning, wanted):
            hkt.replace_attention(model)
        with warnings.catch_warnings():  # a module in two places is one module
            warnings.simplefilter("error")
            module = attention()
            hkt.replace_attention(nn.ModuleList([module, module]))

    def test_what_was_frozen_stays_frozen(self):
        x = torch.randn(2, T, D, dtype=torch.float64)
        for frozen in (["in_proj_weight"], ["in_proj_bias"], ["out_proj.weight", "out_proj.bias"], []):
            mha = attention(batch_first=True)
            for name in frozen:
                mha.get_parameter(name).requires_grad_(False)
            layer = hkt.HKTAttention.from_mha(mha)
            copies = {"in_proj_weight": ["query.0.weight", "key.0.weight", "value.weight"],
                      "in_proj_bias": ["query.0.bias", "key.0.bias", "value.bias"],
                      "out_proj.weight": ["output.weight"], "out_proj.bias": ["output.bias"]}
            want = {copy for name in frozen for copy in copies[name]}
            self.assertEqual({name for name, p in layer.named_parameters() if not p.requires_grad}, want)
            layer(x).sum().backward()

    def test_what_is_no_model(self):
        for kind, message, call in [
            (TypeError, "model is a str; it must be an nn.Module", lambda: hkt.replace_attention("x")),
            (TypeError, "model is a NoneType; it must be an nn.Module", lambda: hkt.replace_attention(None)),
            (TypeError, "only is a str; it must be a function", lambda: hkt.replace_attention(attention(), only="x")),
        ]:
            with self.assertRaisesRegex(kind, message):
                call()

    def test_an_error_leaves_the_model_as_it_was(self):
        model = nn.ModuleList([attention(), attention(add_zero_attn=True)])
        with self.assertRaisesRegex(ValueError, "^1: mha has add_bias_kv or add_zero_attn"):
            hkt.replace_attention(model)
        self.assertIs(type(model[0]), nn.MultiheadAttention)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
