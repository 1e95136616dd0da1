"""Prints the demo's table. Usage: demo_table.py FOLDER, with <model>.json (hkt train --json) and <model>/eval.json in it."""

import json
import pathlib
import sys

MODELS = {"hkt": "HKT (3 levels, gates)", "mha": "standard attention (MHA)"}


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = []
    for model, name in MODELS.items():
        summary = json.loads((folder / f"{model}.json").read_text())
        test = json.loads((folder / model / "eval.json").read_text())
        rows.append([name, f"{100 * test['accuracy']:.2f} ± {100 * test['standard_error']:.2f} %", f"{100 * test['majority']['share']:.2f} %",
                     f"{test['loss']:.3f}", f"{summary['parameters']:,}", f"{summary['tokens_per_second']:,.0f}", f"{summary['seconds']:.0f} s"])
    head = ["", "test accuracy", "majority class", "loss", "parameters", "tokens/s", "wall time"]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print()
    for row in [head, *rows]:
        print(row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])), sep="   ")
    print()
    for model in MODELS:
        print(f"run folder: {folder / model}")


if __name__ == "__main__":
    main()
