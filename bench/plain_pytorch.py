"""The default classifier in a page of plain PyTorch: what hkt's training step is timed against (bench/train_speed.py).

The same layers, sizes, dropout, clipping and AdamW as `hkt train`, written as a PyTorch user would: stock modules,
scaled_dot_product_attention over the concatenated levels, the fused optimizer. Prints one JSON line with the seconds of
every timed step.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn


class SeparableConv(nn.Module):
    def __init__(self, d, k=3, stride=1):
        super().__init__()
        self.k = k
        self.depthwise = nn.Conv1d(d, d, k, stride=stride, groups=d)
        self.pointwise = nn.Linear(d, d)

    def forward(self, x):
        y = self.depthwise(F.pad(x.transpose(1, 2), (self.k - 1, 0)))
        return self.pointwise(y.transpose(1, 2))


class Attention(nn.Module):
    def __init__(self, d, heads, levels, hybrid, dropout, stride=2):
        super().__init__()
        self.heads, self.levels, self.stride, self.hybrid, self.dropout = heads, levels, stride, hybrid, dropout
        self.query = nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(levels))
        self.key = nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(levels))
        self.value, self.output = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        self.down = nn.ModuleList(nn.Sequential(SeparableConv(d, stride=stride), nn.LayerNorm(d), nn.GELU())
                                  for _ in range(levels - 1))
        self.level_logits = nn.Parameter(torch.zeros(heads, levels))
        if hybrid:
            self.gate_logits = nn.Parameter(torch.full((heads, levels), 2.0))
            self.conv = nn.ModuleList(SeparableConv(d) for _ in range(levels))

    def forward(self, x):
        B, T, d = x.shape
        split = lambda y: y.view(B, -1, self.heads, d // self.heads).transpose(1, 2)
        up = lambda y, l: y.repeat_interleave(self.stride**l, 2)[:, :, :T] if l else y
        log_lambda = self.level_logits.log_softmax(1)
        weights = (log_lambda + F.logsigmoid(self.gate_logits)).softmax(1) if self.hybrid else log_lambda.exp()
        queries, keys, branches, level = [], [], [], x
        for l in range(self.levels):
            if l:
                level = self.down[l - 1](level)
            if self.levels > 1 or self.hybrid:
                queries.append(up(split(self.query[l](level)) * weights[:, l, None, None], l))
            else:
                queries.append(split(self.query[l](level)))
            keys.append(up(split(self.key[l](level)), l))
            if self.hybrid:
                branches.append(up(split(self.conv[l](level)), l))
        q, k = (torch.cat(queries, 3), torch.cat(keys, 3)) if self.levels > 1 else (queries[0], keys[0])
        v = split(self.value(x))
        if self.levels > 1:
            v = F.pad(v, (0, q.shape[3] - v.shape[3]))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=(d // self.heads) ** -0.5)
        out = out[..., : d // self.heads]
        if self.hybrid:
            share = log_lambda.exp() * torch.sigmoid(-self.gate_logits)
            out = out * (1 - share.sum(1))[:, None, None]
            for l, branch in enumerate(branches):
                out = out + branch * share[:, l, None, None]
        return F.dropout(self.output(out.transpose(1, 2).reshape(B, T, d)), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, d, heads, d_ff, levels, hybrid, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = Attention(d, heads, levels, hybrid, dropout)
        self.ffn = nn.Sequential(nn.Linear(d, d_ff), nn.GELU(), nn.Linear(d_ff, d), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class Classifier(nn.Module):
    def __init__(self, vocabulary, T, classes, d, heads, d_ff, layers, levels, hybrid, dropout):
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocabulary, d), nn.Parameter(torch.randn(T, d) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(d, heads, d_ff, levels, hybrid, dropout) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, ids):
        x = self.dropout(self.embedding(ids) + self.position)
        return self.head(self.norm(self.blocks(x)).mean(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["hkt", "hkt-fusion", "mha", "mha-conv"], default="mha")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--warmup-steps", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seq-len", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    levels, hybrid = (3 if args.model.startswith("hkt") else 1), args.model in ("hkt", "mha-conv")
    model = Classifier(257, args.seq_len, 2, d=64, heads=2, d_ff=128, layers=2, levels=levels, hybrid=hybrid, dropout=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    ids = torch.randint(1, 257, (args.batch, args.seq_len))
    labels = torch.randint(0, 2, (args.batch,))
    seconds = []
    for step in range(args.warmup_steps + args.steps):
        start = time.perf_counter()
        loss = F.cross_entropy(model(ids), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        if step >= args.warmup_steps:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters()), "step_seconds": seconds}))


if __name__ == "__main__":
    main()
