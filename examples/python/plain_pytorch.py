"""Plain PyTorch: a small causal language model made of HKT blocks, and PyTorch's own encoder with HKT put into it.

Data are made here: each sequence repeats a phrase of 5 to 8 random letters, so that what comes next stands one phrase back.
"""

import torch
import torch.nn.functional as F
from torch import nn

import hkt

LETTERS, T = 12, 64


class LanguageModel(nn.Module):
    """Embedding, blocks with rotary positions, head. ids [B, T] -> logits of each next letter [B, T, LETTERS]."""

    def __init__(self, d_model=32, num_heads=2, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, d_model)
        self.blocks = nn.ModuleList(
            hkt.TransformerBlock(d_model, num_heads, 4 * d_model, levels=2, stride=2, rotary=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, LETTERS)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class EncoderModel(nn.Module):
    """The same task with nn.TransformerEncoder, whose attention hkt.replace_attention swaps."""

    def __init__(self, d_model=32, num_heads=2, layers=2):
        super().__init__()
        self.embedding, self.position = nn.Embedding(LETTERS, d_model), nn.Embedding(T, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, 4 * d_model, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, LETTERS)

    def forward(self, ids):
        x = self.embedding(ids) + self.position.weight[: ids.size(1)]
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.head(self.encoder(x, mask=mask, is_causal=True))


def batch(size=32):
    phrases = torch.randint(0, LETTERS, (size, 8))
    periods = torch.randint(5, 9, (size, 1))
    return phrases.gather(1, torch.arange(T + 1).expand(size, -1) % periods)


def train(model, steps, lr=3e-3):
    optimizer = torch.optim.AdamW(model.parameters(), lr)
    losses = []
    for _ in range(steps):
        ids = batch()
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(steps=150):
    torch.manual_seed(1)
    own = train(LanguageModel(), steps)
    print(f"HKT blocks: loss {own[0]:.2f} -> {own[-1]:.2f} (guessing: {torch.tensor(LETTERS).log():.2f})")

    model = EncoderModel()
    train(model, steps // 3)
    ids = batch()[:, :-1]
    before = model(ids)
    hkt.replace_attention(model, levels=3)
    after = model(ids)
    print(f"nn.TransformerEncoder with HKT inside: largest difference of the logits {(after - before).abs().max().item():.1e}")
    tuned = train(model, steps)
    print(f"trained on: loss {tuned[0]:.2f} -> {tuned[-1]:.2f}")
    return own, before, after, tuned


if __name__ == "__main__":
    main()
