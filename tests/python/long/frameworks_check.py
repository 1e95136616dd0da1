"""With transformers, lightning and peft: the examples, and LoRA on each submodule."""

import os
import pathlib
import sys
import tempfile
import unittest
import warnings

import torch
from peft import LoraConfig, get_peft_model
from torch import nn

import hkt

root = pathlib.Path(os.environ.get("HKT_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
sys.path.insert(0, str(root / "examples/python"))

import lightning_module
import transformers_trainer


class ExamplesTest(unittest.TestCase):
    def test_transformers(self):
        before, after, first, last, moved = transformers_trainer.main()
        self.assertLess((after - before).abs().max(), 1e-5)
        self.assertGreater((after - before).abs().max(), 0)
        self.assertLess(last, 0.8 * first)
        self.assertGreater(moved, 1e-3)

    def test_lightning(self):
        first, last, module, again = lightning_module.main()
        self.assertLess(last["validation_loss"], 0.5 * first["validation_loss"])
        self.assertGreater(last["validation_accuracy"], 0.8)
        for name, tensor in again.state_dict().items():
            self.assertEqual(tensor.shape, module.state_dict()[name].shape)


class PeftTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.model = hkt.Classifier(16, 10, 96, d_model=16, dropout=0.0).eval()
        self.ids, self.lengths = torch.randint(0, 16, (2, 40)), torch.tensor([40, 23])

    def test_lora_acts_on_each_submodule(self):
        targets = [n for n, m in self.model.named_modules() if isinstance(m, (nn.Linear, nn.Embedding))]
        self.assertEqual(len(targets), 3 + 2 * 15)
        want = self.model(self.ids, self.lengths)
        for target in targets:
            with self.subTest(target=target), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tuned = get_peft_model(self.model, LoraConfig(r=2, target_modules=rf"^{target}$", init_lora_weights=False))
                got = tuned(self.ids, self.lengths)
                self.assertGreater((got - want).abs().max(), 1e-5)
                got.square().sum().backward()
                for name, parameter in tuned.named_parameters():
                    self.assertEqual(parameter.requires_grad, "lora_" in name, name)
                    if parameter.requires_grad:
                        self.assertGreater(parameter.grad.abs().max(), 0, name)
                self.model = tuned.unload()
                torch.testing.assert_close(self.model(self.ids, self.lengths), want)

    def test_merged_it_is_a_run_again(self):
        targets = ["pointwise", "query.0", "value", "output", "position"]
        config = LoraConfig(r=2, target_modules=targets, init_lora_weights=False)
        tuned = get_peft_model(self.model, config)
        want = tuned(self.ids, self.lengths)
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "merge_and_unload"):
                hkt.save(tuned.base_model.model, folder)
            hkt.save(tuned.merge_and_unload(), folder, config={"task": "listops", "preset": "tiny"})
            again = hkt.load(folder)
        torch.testing.assert_close(again(self.ids, self.lengths), want, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
