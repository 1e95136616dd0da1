"""Forward and backward of hkt.HKTAttention(256, 4, hybrid=False) against nn.MultiheadAttention(256, 4), causal, batch of 4.

The contenders take turns in a new order every round, in one process, so that the noise of a shared machine meets all; each
round's gradients are fresh. Prints median and best of each and their ratios; --json prints the same as one document. Needs
the package installed, or PYTHONPATH=python and HKT_LIBRARY (docs/python.md).
"""

import argparse
import json
import random
import statistics
import time

import torch
from torch import nn

import hkt


def contenders(args, T):
    """Name -> module and the call of one forward pass."""
    torch.manual_seed(1)
    mask = nn.Transformer.generate_square_subsequent_mask(T)
    mha = nn.MultiheadAttention(args.d_model, args.heads, batch_first=True)
    made = {
        "hkt": hkt.HKTAttention(args.d_model, args.heads, hybrid=False),
        "hkt, one level": hkt.HKTAttention(args.d_model, args.heads, levels=1, hybrid=False),
        "hkt, gates": hkt.HKTAttention(args.d_model, args.heads),
    }
    calls = {name: (module, module) for name, module in made.items()}
    calls["mha, default"] = (mha, lambda x: mha(x, x, x, attn_mask=mask)[0])
    calls["mha, fast"] = (mha, lambda x: mha(x, x, x, attn_mask=mask, need_weights=False, is_causal=True)[0])
    return calls


def measure(args, T):
    calls = contenders(args, T)
    x, upstream = torch.randn(args.batch, T, args.d_model), torch.randn(args.batch, T, args.d_model)
    seconds = {name: [] for name in calls}
    for round_ in range(args.rounds + 1):
        for name in random.sample(list(calls), len(calls)):
            module, call = calls[name]
            module.zero_grad()
            inputs = x.clone().requires_grad_(True)
            start = time.perf_counter()
            call(inputs).backward(upstream)
            if round_ > 0:  # the first warms up
                seconds[name].append(time.perf_counter() - start)
    best = {name: min(times) for name, times in seconds.items()}
    median = {name: statistics.median(times) for name, times in seconds.items()}
    against = lambda times, peer: times["hkt"] / times[peer]  # noqa: E731
    return {
        "T": T,
        "seconds": {name: {"best": best[name], "median": median[name]} for name in calls},
        "hkt / mha, default": {"best": against(best, "mha, default"), "median": against(median, "mha, default")},
        "hkt / mha, fast": {"best": against(best, "mha, fast"), "median": against(median, "mha, fast")},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seq-len", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    report = {"info": hkt.info(), "threads": args.threads, "batch": args.batch, "d_model": args.d_model, "heads": args.heads,
              "rounds": args.rounds, "results": []}
    for T in args.seq_len:
        result = measure(args, T)
        report["results"].append(result)
        if args.json:
            continue
        print(f"T = {T}, {args.threads} threads, {args.rounds} rounds")
        for name, times in result["seconds"].items():
            print(f"  {name:14s} best {1e3 * times['best']:8.1f} ms   median {1e3 * times['median']:8.1f} ms")
        for peer in ("default", "fast"):
            ratio = result[f"hkt / mha, {peer}"]
            print(f"  hkt / mha, {peer:7s} best {ratio['best']:.3f}   median {ratio['median']:.3f}", flush=True)
    if args.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
