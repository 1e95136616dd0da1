"""Hugging Face Transformers: the self-attention of a DistilBERT replaced by HKT, then fine-tuned through Trainer.

pip install transformers accelerate. Data and model are made here: sequences of 20 to 60 tokens in which one half of the
vocabulary is more frequent than the other; the label is which. A model of the hub is replaced in the same way.
"""

import tempfile

import torch
from torch import nn
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed

import hkt

WORDS, CLS, PAD = 40, 40, 41


class SelfAttention(nn.Module):
    """HKT under the call of DistilBertSelfAttention, with its weights: at first the outputs are the old ones."""

    def __init__(self, old, levels=3, stride=2):
        super().__init__()
        mha = nn.MultiheadAttention(old.dim, old.n_heads, device=old.q_lin.weight.device, dtype=old.q_lin.weight.dtype)
        projections = (old.q_lin, old.k_lin, old.v_lin)
        with torch.no_grad():
            mha.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
            mha.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
        mha.out_proj = old.out_lin
        self.attention = hkt.HKTAttention.from_mha(mha, levels, stride, causal=False).train(old.training)

    def forward(self, hidden_states, attention_mask=None, **kwargs):
        lengths = None
        if attention_mask is not None:  # [B, 1, T, T], true where a key is valid: every row says it
            valid = attention_mask[:, 0, 0]
            lengths = valid.sum(1)
            assert (valid[:, :-1] >= valid[:, 1:]).all(), "padding must be on the right (tokenizer.padding_side)"
        return self.attention(hidden_states, lengths), None


def replace(model):
    for layer in model.distilbert.transformer.layer:
        layer.attention = SelfAttention(layer.attention)
    return model


def samples(count):
    made = []
    for i in range(count):
        label, length = i % 2, int(torch.randint(20, 61, ()))
        words = torch.randint(0, WORDS // 2, (length,))
        words += WORDS // 2 * (torch.rand(length) < (0.4, 0.6)[label])
        made.append({"input_ids": [CLS, *words.tolist()], "labels": label})
    return made


def collate(batch):
    ids = [torch.tensor(sample["input_ids"]) for sample in batch]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)
    mask = torch.arange(padded.size(1)) < torch.tensor([len(x) for x in ids]).unsqueeze(1)
    return {"input_ids": padded, "attention_mask": mask.long(), "labels": torch.tensor([s["labels"] for s in batch])}


def trainer(model, steps, folder, data):
    arguments = TrainingArguments(folder, max_steps=steps, per_device_train_batch_size=16, learning_rate=2e-3, use_cpu=True,
                                  save_strategy="no", report_to=[], disable_tqdm=True, logging_steps=20, seed=1)
    return Trainer(model, arguments, train_dataset=data, eval_dataset=data[:128], data_collator=collate)


def main():
    set_seed(1)
    data = samples(1024)
    config = DistilBertConfig(vocab_size=WORDS + 2, max_position_embeddings=64, n_layers=2, n_heads=4, dim=64, hidden_dim=128,
                              pad_token_id=PAD, attention_dropout=0.0)
    model = DistilBertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        trainer(model, 40, folder, data).train()
        batch = collate(data[:8])
        before = model.eval()(**batch).logits
        after = replace(model)(**batch).logits
        print(f"largest difference of the logits after the replacement: {(after - before).abs().max().item():.1e}")
        first = trainer(model, 1, folder, data).evaluate()["eval_loss"]
        tuner = trainer(model, 60, folder, data)
        tuner.train()
        last = tuner.evaluate()["eval_loss"]
    moved = model.distilbert.transformer.layer[0].attention.attention.query[2].weight.abs().max().item()
    print(f"loss {first:.3f} -> {last:.3f}; the coarsest query projection, 0 at first, is now up to {moved:.1e}")
    return before, after, first, last, moved


if __name__ == "__main__":
    main()
