"""torch.compile with inductor: one graph for every length, values and gradients those of eager PyTorch."""

import unittest

import torch
from torch import nn
from torch._dynamo.utils import counters

import hkt

D = 16


class InductorTest(unittest.TestCase):
    def compare(self, module, inputs):
        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(module, fullgraph=True, dynamic=True)  # inductor
        for args in inputs:
            results = []
            for call in (compiled, module):
                module.zero_grad()
                out = call(*args)
                out.float().square().sum().backward()
                results.append([out.detach(), *(p.grad.clone() for p in module.parameters())])
            # Some gradients are 0 but for rounding (of key biases, which softmax does not see): the largest is the measure.
            largest = max(float(want.abs().max()) for want in results[1])
            for got, want in zip(*results, strict=True):
                self.assertEqual(got.dtype, want.dtype)
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5 * largest)
        self.assertEqual(counters["stats"]["unique_graphs"], 1)

    def test_layers(self):
        for options in ({}, {"hybrid": False, "rotary": True, "levels": 2}):
            with self.subTest(options=options):
                torch.manual_seed(1)
                module = hkt.HKTAttention(D, 4, **options)
                for logits in (module.level_logits, module.gate_logits):
                    if logits is not None:
                        nn.init.normal_(logits)
                lengths = torch.tensor([24, 0, 17])
                self.compare(module, [(torch.randn(3, T, D), lengths) for T in (24, 37, 64)])

    def test_in_place_of_multi_head_attention(self):
        torch.manual_seed(1)
        layer = nn.TransformerEncoderLayer(D, 4, 32, 0.0, batch_first=True)
        model = hkt.replace_attention(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), levels=2)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if ".query." in name:
                    parameter.normal_(0, 0.3)
        call = lambda T: (torch.randn(3, T, D), nn.Transformer.generate_square_subsequent_mask(T), None, True)
        self.compare(model, [call(T) for T in (24, 37)])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
