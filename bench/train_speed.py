"""Training steps per second of `hkt train` against the same model in plain PyTorch (bench/plain_pytorch.py).

The two take turns in one run, so that the noise of a shared machine meets both. Prints, per model, the median step of each
and the median over the rounds of their ratio; --json prints the same as one document.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=os.environ.get("HKT_PROGRAM", ROOT / "build/release/hkt"))
    parser.add_argument("--models", nargs="+", default=["mha", "hkt"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seq-len", type=int, default=1024)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    size = ["--batch", str(args.batch), "--seq-len", str(args.seq_len), "--threads", str(args.threads)]
    report = {"info": run([args.program, "info", "--json"]), "threads": args.threads, "batch": args.batch,
              "seq_len": args.seq_len, "models": {}}
    for model in args.models:
        ours, plain, ratios = [], [], []
        for round_ in range(args.rounds):
            commands = [([args.program, "train", "--task", "imdb", "--dry-run", "--json", "--model", model, *size], ours),
                        ([sys.executable, ROOT / "bench/plain_pytorch.py", "--model", model, *size], plain)]
            for command, seconds in commands if round_ % 2 == 0 else reversed(commands):
                seconds.append(statistics.median(run(command)["step_seconds"]))
            ratios.append(plain[-1] / ours[-1])
        report["models"][model] = {"hkt_step_seconds": ours, "plain_step_seconds": plain, "ratios": ratios,
                                   "median_ratio": statistics.median(ratios)}
        if not args.json:
            print(f"{model:10s} hkt {1 / statistics.median(ours):6.3f} steps/s   plain PyTorch {1 / statistics.median(plain):6.3f} "
                  f"steps/s   ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} … {max(ratios):.3f}, {args.rounds} rounds)",
                  flush=True)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        info = report["info"]
        print(f"{info['processor']}, {info['simd']}, {args.threads} threads, PyTorch {info['torch_loaded']}, commit {info['commit']}")


if __name__ == "__main__":
    main()
