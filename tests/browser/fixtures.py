"""Made-up experiments and run folders for the tests of `hkt report`: numbers that no machine measured, never to be committed
as results.   python3 tests/browser/fixtures.py FOLDER   writes them to look at: FOLDER/experiments and FOLDER/run."""

import base64
import json
import math
import pathlib
import random
import sys

VERSION = (pathlib.Path(__file__).parents[2] / "VERSION").read_text().strip()
MODELS = {"HKT": ("hkt", 165000), "HKT fusion": ("hkt-fusion", 138000), "MHA": ("mha", 87000), "MHA+conv": ("mha-conv", 96000),
          "MHA wide": ("mha-wide", 165100)}
LEVELS = {"hkt": 3, "hkt-fusion": 3, "mha": 1, "mha-conv": 1, "mha-wide": 1}
ACCURACY = {  # means that the made-up runs scatter around
    "listops": {"HKT": 0.47, "HKT fusion": 0.44, "MHA": 0.40, "MHA+conv": 0.43, "MHA wide": 0.405},
    "imdb": {"HKT": 0.701, "HKT fusion": 0.66, "MHA": 0.655, "MHA+conv": 0.702, "MHA wide": 0.655},
    "cifar10": {"HKT": 0.36, "HKT fusion": 0.345, "MHA": 0.34, "MHA+conv": 0.355},
}
EXAMPLES = {"listops": 400, "imdb": 400, "cifar10": 400}
CLASSES = {"listops": 10, "imdb": 2, "cifar10": 10}
SIZES = {"listops": (96000, 5000), "imdb": (22500, 2500), "cifar10": (45000, 5000)}


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def bits(flags):
    packed = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        packed[i // 8] |= flag << (i % 8)
    return base64.b64encode(bytes(packed)).decode()


def summary(levels, dice):
    """What a result keeps of hkt analyze."""
    def figures(trained):
        return {"lambda": [round(1 / levels + 0.03 * (l - 1) * trained + dice.gauss(0, 0.004), 4) for l in range(levels)],
                "beta": [round(0.88 - 0.05 * l * trained, 4) for l in range(levels)],
                "negative_share": [0.5] * levels,
                "negative_energy": [round(0.5 + 0.1 * trained + dice.gauss(0, 0.02), 4) for _ in range(levels)],
                "antisymmetric_share": [round(0.49 - trained * (0.06 - 0.01 * l) + dice.gauss(0, 0.005), 4) for l in range(levels)],
                "antisymmetric_expected": [0.4922] * levels,
                "antisymmetric_z": [round(trained * (-5 + l) + dice.gauss(0, 0.5), 4) for l in range(levels)],
                "score_kurtosis": [round(3.2 + trained * (4 - l), 4) for l in range(levels)]}
    heads = [{"layer": i, "head": h, **figures(1)} for i in range(2) for h in range(2)]
    return {"heads": heads, "levels": figures(1), "levels_initial": figures(0),
            "levels_removed": [{"removed": r, "accuracy": 0.4 - 0.03 * len(r), "change": -0.03 * len(r), "change_standard_error": 0.01}
                               for r in ([], [0], [1], [2], [1, 2])]}


def result(tier, name, row, group, config, seed, accuracy, parameters):
    dice = random.Random(f"{name}-{seed}")
    task, steps = config["task"], config["steps"]
    examples, classes = EXAMPLES[task], CLASSES[task]
    accuracy = min(1.0, max(0.0, accuracy + dice.gauss(0, 0.006)))
    right = [dice.random() < accuracy for _ in range(examples)]
    width = max(1, math.ceil(math.log2(classes)))
    predicted = []
    for _ in right:
        label = dice.randrange(classes)
        predicted += [label >> b & 1 for b in range(width)]
    train, validation = SIZES[task]
    evaluations = [(steps * k // 5, 0.02 * dice.random() + accuracy - 0.25 * math.exp(-k / 1.5)) for k in range(1, 6)]
    seconds = steps * (0.16 if LEVELS[config["model"]] > 1 else 0.12)
    curve = [[step, round(a, 4), round(2.3 * (1 - a), 4), round(seconds * step / steps, 2), round(0.99 * seconds * step / steps, 2)]
             for step, a in evaluations]
    best = max(curve, key=lambda point: point[1])
    document = {
        "format": 1, "tier": tier, "name": name, "row": row, "group": group, "task": task, "seed": seed, "hkt_version": VERSION,
        "commit": "0123456789ab", "processor": "Made-up processor", "threads": 1, "config": {**config, "seed": seed},
        "parameters": parameters, "sizes": {"train": train, "validation": validation, "test": examples},
        "curve": {"train": [[s, round(2.3 - 1.2 * accuracy * s / steps + dice.gauss(0, 0.02), 4)] for s in range(steps // 40, steps + 1, steps // 40)],
                  "validation": curve},
        "best": {"step": best[0], "accuracy": best[1], "loss": best[2]},
        "last": {"step": curve[-1][0], "accuracy": curve[-1][1], "loss": curve[-1][2]},
        "test": {"examples": examples, "accuracy": sum(right) / examples, "loss": 1.5, "majority": 0.12, "truncated": 0,
                 "classes": [str(c) for c in range(classes)], "recall": [0.4] * classes, "bits": width, "predicted": bits(predicted),
                 "correct": bits(right)},
        "time": {"wall_seconds": seconds, "cpu_seconds": 0.99 * seconds, "peak_memory_bytes": 300_000_000 + 1000 * parameters}}
    if task == "listops":
        depths = [min(5, 1 + i * 5 // examples) + 1 for i in range(examples)]
        roots = [("MAX", "MED", "MIN", "SM")[i % 4] for i in range(examples)]
        document["by_depth"] = [{"depth": d, "examples": depths.count(d), "correct": sum(r for r, x in zip(right, depths) if x == d)}
                                for d in sorted(set(depths))]
        document["by_operator"] = [{"operator": o, "examples": roots.count(o), "correct": sum(r for r, x in zip(right, roots) if x == o)}
                                   for o in sorted(set(roots))]
    if LEVELS[config["model"]] > 1:
        document["analysis"] = summary(config.get("levels") or LEVELS[config["model"]], dice)
    return document


def experiments(folder, tier="small", missing=(), seeds=(1, 2, 3)):
    """The tier's rows and the results of all of them but those that `missing` names ("imdb-hkt-s3", or a whole "imdb-hkt")."""
    rows = []
    for task, accuracies in ACCURACY.items():
        for row, accuracy in accuracies.items():
            model, parameters = MODELS[row]
            own = seeds if task != "cifar10" or row in ("HKT", "MHA") else seeds[:1]
            rows.append((f"{task}-{model}", row, "table", {"task": task, "model": model, "steps": 3000}, own, accuracy, parameters))
    base = {"task": "listops", "model": "hkt", "steps": 1500}
    for name, change, accuracy in [("base", {}, 0.45), ("l1", {"levels": 1}, 0.41), ("l4", {"levels": 4}, 0.455), ("s4", {"stride": 4}, 0.44),
                                   ("k5", {"kernel_size": 5}, 0.46), ("psd", {"psd": True}, 0.43), ("gain", {"score_gain": 1.7320508}, 0.45),
                                   ("bidirectional", {"bidirectional": True}, 0.5)]:
        title = "HKT" if name == "base" else "HKT, " + ", ".join(f"{k} {v}" for k, v in change.items())
        rows.append((f"listops-ablation-{name}", title, "ablation", {**base, **change}, (1,), accuracy, 165000))
    for model in ("hkt", "mha"):
        for lr in (0.0005, 0.001, 0.002):
            rows.append((f"imdb-{model}-lr{lr}", "HKT" if model == "hkt" else "MHA", "recipe",
                         {"task": "imdb", "model": model, "steps": 700, "lr": lr}, (1,), 0.62 + lr * 10, 165000))
    chosen = tier
    for name, row, group, config, own, accuracy, parameters in rows:
        tier = "recipe" if group == "recipe" else chosen
        write(folder / tier / f"{name}.json", {"row": row, "group": group, "seeds": list(own), "config": config})
        for seed in own:
            if name in missing or f"{name}-s{seed}" in missing:
                continue
            write(folder / "results" / tier / f"{name}-s{seed}.json", result(tier, name, row, group, config, seed, accuracy, parameters))
    write(folder / "results/step.json", {
        "environment": {"processor": "Made-up processor"}, "seq_len": 1024,
        "arms": {arm: {"median_seconds": seconds, "parameters": p, "memory_bytes": 2000 * p} for arm, seconds, p in
                 [("hkt_fusion", 0.16, 138000), ("hkt", 0.2, 165000), ("mha", 0.13, 87000), ("mha_torch", 0.15, 87000)]}})
    operators = ("MIN", "MAX", "MED", "SM")
    write(folder / "results/ladder.json", {
        "task": "listops", "preset": "short", "split": "test", "examples": 10000, "draws": 100,
        "ladder": {name: {"accuracy": a, "standard_error": 0.004, "by_root_operator": {o: a for o in operators}} for name, a in
                   [("majority", 0.117), ("root_operator", 0.24), ("depth_1", 0.38), ("depth_2", 0.558), ("depth_3", 0.65), ("depth_4", 0.754)]}})
    write(folder / "results/floors-imdb.json", {"task": "imdb", "floors": {
        "majority": {"validation": 0.5, "test": 0.5}, "count_regression": {"validation": 0.6696, "test": 0.6448}}})


HOSTILE = ['<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 2">', "</script>", "<!--", "&lt;b&gt;", "é", "\\x00",
           "{{1+1}}", "' \" `", "\u2028", "=HYPERLINK(1)", "very"]


def run_folder(folder, task="text", tokens=HOSTILE, classes=("<b>bad</b>", "good"), analysis=True, levels=3):
    """A run folder with an analysis of a short example, whose tokens are the given ones."""
    dice = random.Random(7)
    config = {"hkt_version": VERSION, "task": task, "data": "reviews.csv", "model": "hkt", "steps": 200, "levels": levels}
    write(folder / "config.json", config)
    lines = [{"kind": "train", "step": s, "loss": 2.3 - s / 200, "seconds": s / 10} for s in range(20, 201, 20)]
    lines += [{"kind": "eval", "step": s, "split": "validation", "accuracy": 0.3 + s / 1000, "loss": 1.8, "best": True, "seconds": s / 10,
               "cpu_seconds": s / 10.5} for s in (100, 200)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    weights = {"checksum": "xxh3-128:00", "validation": {"step": 200, "accuracy": 0.5, "loss": 1.8}}
    write(folder / "eval.json", {
        "hkt_version": VERSION, "split": "test", "samples": 40, "accuracy": 0.55, "standard_error": 0.08, "loss": 0.7, "weights": weights,
        "majority": {"class": classes[0], "share": 0.5},
        "classes": [{"name": name, "samples": 20, "recall": 0.5, "precision": None} for name in classes]})
    if not analysis:
        return
    T, length = len(tokens), [len(tokens)]
    while len(length) < levels:
        length.append(-(-length[-1] // 2))
    places = [(i, h, l) for i in range(2) for h in range(2) for l in range(levels)]

    def triangle(n, normal):
        rows = [[dice.gauss(0, 1) for _ in range(r + 1)] for r in range(n)]
        if normal:
            rows = [[math.exp(x) for x in row] for row in rows]
            rows = [[x / sum(row) for x in row] for row in rows]
        return [[float(f"{x:.4g}") for x in row] for row in rows]

    def subjects():
        return {
            "kernel": {"levels": [{"layer": i, "head": h, "level": l, "positive": 8, "negative": 8, "zero": 0, "negative_share": 0.5,
                                   "negative_energy": 0.55, "min": -1.0, "max": 1.2, "trace": 0.2,
                                   "eigenvalues": sorted(dice.gauss(0, 1) for _ in range(16))} for i, h, l in places]},
            "direction": {"levels": [{"layer": i, "head": h, "level": l, "alpha": 0.44 + 0.01 * l, "expected": 0.49, "deviation": 0.01,
                                      "z": -5 + l, "alpha_data": 0.3} for i, h, l in places]},
            "kurtosis": {"scores": [{"layer": i, "head": h, "level": l, "kurtosis": 4.5, "median": 4.4} for i, h, l in places],
                         "levels": [{"layer": i, "level": l, "kappa": 310, "gaussian": 288, "gamma": 0.08} for i in range(2) for l in range(levels)]},
            "mixture": {"levels": [{"layer": i, "head": h, "level": l, "lambda": 0.3 + 0.03 * l, "beta": 0.88, "weight": 0.3 + 0.03 * l,
                                    "variance_share": 0.2 + 0.13 * l, "distance_alone": 3.0 + l} for i, h, l in places],
                        "heads": [{"layer": i, "head": h, "attention_share": 0.88, "relative_entropy": 0.6, "distance": 4.0,
                                   "uniform_distance": 3.5} for i in range(2) for h in range(2)]},
            "levels_removed": {"rows": [{"removed": r, "accuracy": 0.5 - 0.05 * len(r), "loss": 0.7, "change": -0.05 * len(r),
                                         "change_standard_error": 0.02, "predictions_changed": 0.1 * len(r)} for r in ([], [0], [1], [2], [1, 2])]}}

    costs = [{"part": part, "standard": s, "this": t, "ratio": t / s if s else None} for part, s, t in
             [("projections", 800, 1100), ("downsample", 0, 90), ("scores", 400, 525), ("values", 400, 400), ("branch", 0, 120), ("layer", 1600, 2235)]]
    write(folder / "analysis.json", {
        "hkt_version": VERSION, "run": "run", "model": "hkt", "task": task, "split": "validation", "weights": weights,
        "shape": {"layers": 2, "heads": 2, "d_model": 16, "head_width": 8, "levels": levels, "stride": 2, "hybrid": True, "psd": False,
                  "causal": True, "score_gain": 1.0},
        "skipped": [], "published": [{"name": "score_kurtosis", "subject": "kurtosis", "published": "kurtosis about 33", "value": 33.0,
                                      "here": 4.5, "note": "a kurtosis of scores"}],
        "cost": {"tokens": T, "score_factor": 1.3125, "score_factor_limit": 1.3333, "causal": costs, "all_pairs": costs,
                 "parameters": {"part": "attention", "standard": 1000, "this": 3000, "ratio": 3.0}},
        **subjects(), "initial": subjects(),
        "example": {"index": 3, "length": T, "label": classes[0], "predicted": classes[1], "probability": 0.7, "tokens": list(tokens),
                    "tokens_per_row": 1,
                    "matrices": [{"layer": i, "head": h, "attention": triangle(T, True),
                                  "levels": [{"level": l, "positions": length[l], "tokens_per_row": 2 ** l, "scores": triangle(length[l], False)}
                                             for l in range(levels)]} for i in range(2) for h in range(2)]}})


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    experiments(root / "experiments", missing=("imdb-hkt-s3", "cifar10-mha-conv"))
    run_folder(root / "run")
