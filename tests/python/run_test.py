"""hkt.load and hkt.save against the program: the same bits for the same run, both ways; damaged, foreign and newer files."""

import itertools
import json
import math
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch
from torch import nn

import hkt
from hkt import _options, _safetensors

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
PROGRAM = os.environ["HKT_PROGRAM"]
SMALL = "train --task listops --preset tiny --steps 2 --batch 4 --d-model 8 --d-ff 8 --eval-every 0 --log-every 0 --quiet".split()
# A run a line: every model, and every option that changes what the layer computes.
RUNS = {
    "hkt": "--model hkt",
    "hkt-fusion": "--model hkt-fusion --score-gain 1.7",
    "mha": "--model mha --bias",
    "mha-conv": "--model mha-conv --kernel-size 5",
    "mha-wide": "--model mha-wide",
    "psd": "--psd --rotary --layers 1",
    "levels": "--levels 4 --stride 3 --heads 4 --kv-heads 2 --bidirectional",
}
WORDS = ["", *"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]"]  # by id


def program(*args, stdin=None):
    done = subprocess.run([PROGRAM, *map(str, args)], text=True, input=stdin, capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def texts():
    """Expressions of several lengths; some of one length, which are one batch."""
    draw = random.Random(1)
    made = [" ".join(["[MAX", *(str(draw.randint(0, 9)) for _ in range(n)), "]"]) for n in (3, 3, 3, 3, 9, 30, 57, 1)]
    return [*made, "[SM 3 [MED 1 2 7 ] [MIN 9 4 ] ]"]


def batches(lines, size):
    """The program's: longest first, equal ones in the reverse of their order, padded with 0."""
    ids = [[WORDS.index(word) for word in line.split()] for line in lines]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))[::-1]
    for at in range(0, len(order), size):
        rows = order[at : at + size]
        lengths = torch.tensor([len(ids[i]) for i in rows])
        yield rows, nn.utils.rnn.pad_sequence([torch.tensor(ids[i]) for i in rows], batch_first=True), lengths


def probabilities(model, lines):
    result = [None] * len(lines)
    with torch.no_grad():
        for rows, ids, lengths in batches(lines, 4):
            for i, row in zip(rows, model(ids, lengths).double().softmax(1).tolist()):
                result[i] = row
    return result


def predicted(folder, lines):
    status, out, err = program("predict", folder, "-", "--json", stdin="\n".join(lines))
    assert status == 0, err
    return [p["probabilities"] for p in json.loads(out)["predictions"]]


def plain_file(path, tensors, metadata):
    """A safetensors file as other programs write it, without a checksum."""
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hkt-run-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        for name, flags in RUNS.items():
            status, _, err = program(*SMALL, *flags.split(), "--out", cls.root / name)
            assert status == 0, err

    def folder(self, name="hkt", **changes):
        """A copy of a run's two files, options changed."""
        copy = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        (copy / "model.safetensors").write_bytes((self.root / name / "model.safetensors").read_bytes())
        config = json.loads((self.root / name / "config.json").read_text()) | changes
        (copy / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))
        return copy

    def test_every_run_has_the_programs_outputs_bit_for_bit(self):
        for name in RUNS:
            with self.subTest(run=name):
                model = hkt.load(self.root / name)
                self.assertFalse(model.training)
                self.assertEqual(probabilities(model, texts()), predicted(self.root / name, texts()))

    def test_saved_again_it_is_the_same_run_for_the_program(self):
        for name in RUNS:
            with self.subTest(run=name):
                folder = self.root / f"{name}-again"
                hkt.save(hkt.load(self.root / name), folder)
                self.assertEqual((folder / "config.json").read_text(), (self.root / name / "config.json").read_text())
                self.assertEqual(predicted(folder, texts()), predicted(self.root / name, texts()))
                for mine, theirs in zip(hkt.load(folder).parameters(), hkt.load(self.root / name).parameters()):
                    self.assertTrue(torch.equal(mine, theirs))
        status, out, err = program("eval", folder, "--json")
        self.assertEqual(status, 0, err)

    def test_the_names_of_a_texts_classes_stay(self):
        labels = ["ham", "spam, too", "höher", "x y"]
        data = self.root / "mail.csv"
        data.write_text("label,text\n" + "".join(f'"{label}",{label[0]} {i}\n' for i in range(12) for label in labels))
        folder, again = self.root / "text", self.root / "text-again"
        status, _, err = program("train", "--task", "text", "--data", data, "--seq-len", "16", *SMALL[5:], "--out", folder)
        self.assertEqual(status, 0, err)
        model = hkt.load(folder)
        self.assertEqual(json.loads(model.run_classes), sorted(labels, key=str.encode))
        hkt.save(model, again)
        lines = ["h 1", "s 2", "x 3"]
        for which in (folder, again):
            status, out, err = program("predict", which, "-", "--json", stdin="\n".join(lines))
            self.assertEqual(status, 0, err)
            self.assertEqual(json.loads(out)["classes"], sorted(labels, key=str.encode))
        self.assertEqual(predicted(again, lines), predicted(folder, lines))
        # A model of one's own has none: the program calls its classes by number.
        own = hkt.Classifier(257, 3, 16, d_model=8, layers=1).eval()
        hkt.save(own, self.root / "numbers", config={"task": "text", "data": str(data)})
        status, out, err = program("predict", self.root / "numbers", "--text", "x", "--json")
        self.assertEqual((status, json.loads(out)["classes"]), (0, ["0", "1", "2"]), err)

    def test_a_module_of_ones_own_becomes_a_run(self):
        torch.manual_seed(3)
        options = {"d_model": 12, "num_heads": 3, "layers": 1, "levels": 2, "causal": False, "bias": True, "score_gain": 2**0.5}
        for extra in ({"hybrid": False, "num_kv_heads": 1}, {"rotary": True, "psd": True}, {"levels": 1}, {"levels": 1, "hybrid": False}):
            model = hkt.Classifier(16, 10, None if extra.get("rotary") else 96, **{**options, **extra}).eval()
            folder = self.root / "own"
            hkt.save(model, folder, config={"task": "listops", "preset": "tiny", "batch": 4})
            self.assertEqual(predicted(folder, texts()), probabilities(model, texts()))
            again = hkt.load(folder)
            self.assertEqual(str(again), str(model))
            self.assertEqual(again.run_config["batch"], 4)

    def test_images_in_three_channels(self):
        torch.manual_seed(4)
        model = hkt.Classifier(None, 10, 1024, rgb=True, d_model=8, layers=1, d_ff=8).eval()
        self.assertEqual({n: list(p.shape) for n, p in model.embedding.named_parameters()}, {"weight": [8, 3], "bias": [8]})
        folder = self.root / "rgb"
        hkt.save(model, folder, config={"task": "cifar10", "batch": 4})
        images = torch.randint(0, 256, (3, 3, 1024), dtype=torch.uint8)  # planes
        (self.root / "images.bin").write_bytes(bytes(images.flatten().tolist()))
        status, out, err = program("predict", folder, self.root / "images.bin", "--json")
        self.assertEqual(status, 0, err)
        again = hkt.load(folder)
        self.assertTrue(again.rgb)
        values = images.transpose(1, 2).flip(0)  # the program's batch: the last first
        with torch.no_grad():
            logits = again(values, torch.full((3,), 1024)).flip(0)
            self.assertTrue(torch.equal(again(values.long()), again(values)))
            torch.testing.assert_close(again(values.float() / 127.5 - 1), again(values))
            dirty = values.clone()
            dirty[0, 100:] = 7
            short = torch.tensor([100, 1024, 0])
            self.assertTrue(torch.equal(again(dirty, short), again(values, short)))
        self.assertEqual([p["probabilities"] for p in json.loads(out)["predictions"]], logits.double().softmax(1).tolist())
        hkt.save(again, self.root / "rgb-again")
        self.assertTrue(json.loads((self.root / "rgb-again/config.json").read_text())["rgb"])
        for kind, message, call in [
            (ValueError, "vocabulary is 5; with rgb there is none", lambda: hkt.Classifier(5, 2, 9, rgb=True)),
            (TypeError, "vocabulary is None", lambda: hkt.Classifier(None, 2, 9)),
            (ValueError, r"ids has shape \[3, 1024\]; it must be \[B, T, 3\]", lambda: again(values[:, :, 0])),
            (TypeError, "ids is torch.int16; it must be torch.int64, torch.uint8 or floating", lambda: again(values.short())),
            (ValueError, "ids has the value 300; it must be 0 ... 255, the bytes of a channel", lambda: again(values.long() * 0 + 300)),
            (ValueError, "config has rgb = False; the model has True", lambda: hkt.save(again, folder, config={"rgb": False})),
        ]:
            with self.assertRaisesRegex(kind, message):
                call()

    def test_wrapped_and_tied_modules(self):
        class Parallel(nn.Module):  # names its inner module as DistributedDataParallel does
            def __init__(self, module):
                super().__init__()
                self.module = module

        model = hkt.load(self.root / "hkt")
        model.blocks[1].ffn[0].weight = model.blocks[0].ffn[0].weight
        want = probabilities(model, texts())
        model.blocks[1] = torch.compile(model.blocks[1], backend="eager")
        for wrapped in (model, torch.compile(model, backend="eager"), Parallel(torch.compile(model, backend="eager"))):
            folder = self.root / "wrapped"
            hkt.save(wrapped, folder)
            self.assertEqual(predicted(folder, texts()), want)
            self.assertEqual(probabilities(hkt.load(folder), texts()), want)
        # A file whose names have the prefixes.
        other = self.folder()
        _safetensors.write(other / "model.safetensors", Parallel(torch.compile(model)).state_dict(), {})
        self.assertEqual(probabilities(hkt.load(other), texts()), want)

    def test_types_and_devices(self):
        self.assertEqual({p.dtype for p in hkt.load(self.root / "hkt", dtype=torch.float64).parameters()}, {torch.float64})
        self.assertEqual(hkt.load(self.root / "hkt", device="cpu").head.weight.device.type, "cpu")
        self.assertEqual(hkt.load(self.root / "hkt", device="meta").head.weight.device.type, "meta")
        for kind, message, options in [
            (TypeError, "^dtype is torch.int64; it must be torch.float32", {"dtype": torch.int64}),
            (TypeError, "^dtype is 'float32' of type str", {"dtype": "float32"}),
            (ValueError, "^device is 'toaster'; it must be a device of PyTorch", {"device": "toaster"}),
            (TypeError, "^device is 2.5; it must be a device of PyTorch", {"device": 2.5}),
        ]:
            with self.assertRaisesRegex(kind, message):
                hkt.load(self.root / "hkt", **options)
        model = hkt.load(self.root / "hkt").bfloat16()
        hkt.save(model, self.root / "half")
        for a, b in zip(hkt.load(self.root / "half").parameters(), model.parameters()):
            self.assertTrue(torch.equal(a, b.float()))

    def test_what_does_not_fit_is_refused_by_name(self):
        for kind, message, changes in [
            (ValueError, r"options that this hkt for Python does not know: alibi; update hkt", {"alibi": True}),
            (ValueError, r"config.json has no rotary, stride;", {"rotary": ..., "stride": ...}),
            (ValueError, r"was written by hkt 99.0.0, which is newer than this hkt", {"hkt_version": "99.0.0"}),
            (ValueError, r"'next' is not a version of hkt", {"hkt_version": "next"}),
            (ValueError, r"hkt_version is missing", {"hkt_version": ...}),
            (ValueError, r"missing: blocks\.0.*query\.3.*; use the file with the config.json", {"levels": 4}),
            (ValueError, r"not of the model: blocks\.0.*gate_logits", {"hybrid": False}),
            (ValueError, r"level_logits is \[2, 3\] instead of \[4, 3\]", {"heads": 4, "kv_heads": 4}),
            (ValueError, r"stride is 1; it must be at least 2", {"stride": 1}),
            (ValueError, r"config.json: levels is 2.5 of type float; it must be an integer", {"levels": 2.5}),
            (ValueError, r"config.json: stride is null; only options that", {"stride": None}),
            (ValueError, r"config.json: levels is 0; it must be at least 1", {"levels": 0}),
            (ValueError, r"config.json: heads is 0; it must be at least 1", {"heads": 0}),
            (ValueError, r"config.json: d_model is 8; it must be a multiple of num_heads = 3", {"heads": 3, "kv_heads": None}),
            (ValueError, r"config.json: dropout is 1; it must be at least 0 and at most 0.99", {"dropout": 1}),
            (ValueError, r"config.json: score_gain is inf; it must be above 0 and finite", {"score_gain": math.inf}),
            (ValueError, r"config.json: batch is 0; it must be at least 1", {"batch": 0}),
            (ValueError, r"config.json: task is 'chess'; it must be one of listops, cifar10, imdb, text", {"task": "chess"}),
            (ValueError, r"config.json: model is 3 of type int; it must be text", {"model": 3}),
            (ValueError, r"model.safetensors does not fit the model; it has 2 blocks instead of 1000;", {"layers": 1000}),
            (ValueError, r"config.json: bidirectional is 1 of type int; it must be True or False", {"bidirectional": 1}),
        ]:
            with self.subTest(message=message), self.assertRaisesRegex(kind, message):
                hkt.load(self.folder(**changes))
        for name in ("layers", "levels", "d_model", "heads", "kv_heads", "kernel_size", "stride", "d_ff"):
            with self.subTest(huge=name), self.assertRaisesRegex(ValueError, rf"config.json: {name} is 1000000000; it must be at most"):
                hkt.load(self.folder(**{name: 1e9}))  # at once: nothing of that size is made
        # Within the limits, and still more than this machine holds: the weights are looked at first.
        with self.assertRaisesRegex(ValueError, r"model.safetensors does not fit the model; .* instead of \[65536, 65536\]"):
            hkt.load(self.folder(d_model=65536, d_ff=1 << 20))
        # What a hand-written file may leave to the model's name, and how JSON may write a whole number.
        hkt.load(self.folder(levels=None, hybrid=None, kv_heads=None, stride=2.0))
        with self.assertRaisesRegex(FileNotFoundError, "no run in"):
            hkt.load(self.root / "nothing")
        empty = self.folder()
        (empty / "model.safetensors").unlink()
        with self.assertRaisesRegex(FileNotFoundError, "no weights in"):
            hkt.load(empty)
        (empty / "config.json").write_text("{")
        with self.assertRaisesRegex(ValueError, "is no JSON document"):
            hkt.load(empty)

    def test_a_pipe_in_place_of_a_file_is_not_waited_for(self):
        for name in ("model.safetensors", "config.json"):
            copy = self.folder()
            (copy / name).unlink()
            os.mkfifo(copy / name)
            with self.assertRaisesRegex(ValueError, f"{re.escape(str(copy / name))}: not a plain file"):
                hkt.load(copy)

    def test_ablations_are_refused_by_name(self):
        for name, flags in [("fusion", "--fusion uniform"), ("fusion", "--fusion frozen"), ("downsample", "--downsample pick"),
                            ("undecimated", "--undecimated")]:
            with self.subTest(flags=flags):
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.root)) / "run"
                status, _, errors = program(*SMALL, *flags.split(), "--out", folder)
                self.assertEqual(status, 0, errors)
                with self.assertRaisesRegex(ValueError, f"config.json: {name} is .*ablation.*; use the program"):
                    hkt.load(folder)
        # Where training began is nothing that the modules would have to know; and older runs have none of these options.
        self.assertEqual(hkt.load(self.folder(gate_start=0)).run_config["gate_start"], 0)
        hkt.load(self.folder(**dict.fromkeys(["fusion", "gate_start", "downsample", "undecimated"], ...)))

    def test_damaged_weights_are_one_clear_error(self):
        folder = self.folder()
        path = folder / "model.safetensors"
        whole = path.read_bytes()
        length = int.from_bytes(whole[:8], "little")
        damaged = [whole[:n] for n in (0, 7, 8, 100, 8 + length, len(whole) - 1)]
        damaged += [whole + b"x", b"\xff" * 8 + whole[8:], whole.replace(b'"F32"', b'"F99"', 1), whole.replace(b"[0,", b"[4,", 1),
                    whole.replace(b'"shape":[', b'"shape":[9,', 1), whole[:8] + b"[" + whole[9:]]
        for i, content in enumerate(damaged):
            path.write_bytes(content)
            with self.subTest(case=i), self.assertRaisesRegex(ValueError, re.escape(str(path))):
                hkt.load(folder)
        draw = random.Random(1)
        for _ in range(300):  # any byte of the header: an error of ours, or a file that still fits
            content = bytearray(whole)
            content[draw.randrange(8 + length)] = draw.randrange(256)
            path.write_bytes(content)
            try:
                hkt.load(folder)
            except ValueError:
                pass

    def test_one_wrong_bit_is_seen_by_either_side(self):
        folder = self.root / "checked"
        hkt.save(hkt.load(self.root / "hkt"), folder)
        self.assertEqual(program("eval", folder, "--json")[0], 0)
        for origin in (self.root / "hkt", folder):
            whole = (origin / "model.safetensors").read_bytes()
            changed = self.folder()
            for at in (len(whole) - 1, len(whole) // 2):
                (changed / "model.safetensors").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
                with self.assertRaisesRegex(ValueError, "model.safetensors: the checksum does not agree, so the file is damaged"):
                    hkt.load(changed)
                status, _, err = program("eval", changed, "--json")
                self.assertEqual(status, 1)
                self.assertIn("the checksum does not agree", err)
        other = self.folder()  # of another program: none
        tensors, _ = _safetensors.read(folder / "model.safetensors")
        path = other / "model.safetensors"
        plain_file(path, tensors, {})
        hkt.load(other)
        # One of ours always has one.
        for metadata in ({"hkt_version": hkt.info()["version"]}, {"hkt_version": hkt.info()["version"], "hkt_checksum": ""}):
            plain_file(path, tensors, metadata)
            with self.assertRaisesRegex(ValueError, "model.safetensors: was written by hkt and has no checksum, so the file is damaged"):
                hkt.load(other)
        # Which of the two would be meant?
        for prefix in ("_orig_mod.", "module.", "module._orig_mod."):
            plain_file(path, {**tensors, f"{prefix}head.bias": tensors["head.bias"] + 1}, {})
            with self.assertRaisesRegex(ValueError, rf"safetensors has both .*\b{prefix}head.bias.*which name one parameter"):
                hkt.load(other)

    def test_misuse_of_save(self):
        model = hkt.load(self.root / "hkt")
        for kind, message, call in [
            (TypeError, "model is a Linear; it must be an hkt.Classifier", lambda: hkt.save(nn.Linear(1, 1), self.root / "x")),
            (ValueError, "is one that 'hkt train' works in .it has state.safetensors.; choose another", lambda: hkt.save(model, self.root / "hkt")),
            (ValueError, "config has heads, which the model decides", lambda: hkt.save(model, self.root / "x", config={"heads": 2})),
            (ValueError, "config has colour, which the program does not know", lambda: hkt.save(model, self.root / "x", config={"colour": 2})),
            (TypeError, "config: task is 3 of type int; it must be text", lambda: hkt.save(model, self.root / "x", config={"task": 3})),
            (TypeError, "config: task is tensor.1. of type Tensor", lambda: hkt.save(model, self.root / "x", config={"task": torch.tensor(1)})),
            (ValueError, "config: batch is 0; it must be at least 1", lambda: hkt.save(model, self.root / "x", config={"batch": 0})),
            (ValueError, "config: lr is nan; it must be above 0", lambda: hkt.save(model, self.root / "x", config={"lr": math.nan})),
            (TypeError, "config is a list; it must be a dict", lambda: hkt.save(model, self.root / "x", config=[1])),
            (TypeError, "config has 1 of type int; its keys must be names of options", lambda: hkt.save(model, self.root / "x", config={1: 2})),
            (ValueError, "run_folder .*metrics.jsonl is a file; name a folder", lambda: hkt.save(model, self.root / "hkt/metrics.jsonl")),
            (ValueError, "run_folder .*metrics.jsonl is a file", lambda: hkt.save(model, self.root / "hkt/metrics.jsonl/a/b")),
            (ValueError, "model is none that the program has; dropout is 0.995; it must be at least 0 and at most 0.99",
             lambda: hkt.save(hkt.Classifier(16, 10, 96, dropout=0.995), self.root / "x")),
            (TypeError, "torch.float8_e4m3fn; a file holds",
             lambda: hkt.save(hkt.Classifier(16, 10, 96).to(torch.float8_e4m3fn), self.root / "x")),
            (ValueError, "config has seq_len = 5; the model has positions for 96", lambda: hkt.save(model, self.root / "x", config={"seq_len": 5})),
        ]:
            with self.assertRaisesRegex(kind, message):
                call()
        self.assertFalse((self.root / "x").exists())

    def test_options_as_a_file_holds_them(self):
        model = hkt.load(self.root / "hkt")
        folder = self.root / "options"
        hkt.save(model, folder, config={"lr": 1, "steps": 2e3, "max_time": 0.5})
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual((config["lr"], config["steps"], config["max_time"]), (1, 2000, 0.5))
        self.assertIsInstance(config["steps"], int)
        self.assertEqual(program("eval", folder, "--json")[0], 0)

    def test_options_are_those_of_the_program(self):
        header = (SOURCE / "hkt/base/config.h").read_text()
        constants = {"kMaxBatch": 1 << 16, "kMaxEma": 0.999999}
        for name, value in constants.items():
            self.assertEqual(eval(re.search(rf"{name} = ([^;]*);", header)[1]), value)
        kinds = {"bool": bool, "int64_t": int, "double": float, "std::string": str}
        limits = {
            "Between": lambda least, most: {"least": least, "most": most},
            "AtLeast": lambda least: {"least": least},
            "Above": lambda least: {"least": least, "above": True},
            "OneOf": lambda choices: {"choices": choices},
            "Limits": lambda min=-math.inf, max=math.inf: {"least": min, "most": max},
            **constants,
        }
        found = {}
        for struct, body in re.findall(r"^struct (\w+Config) \{(.*?)^\};", header, re.M | re.S):
            types = {n: (bool(o), kinds[t]) for o, t, n in
                     re.findall(r"^  (std::optional<)?(bool|int64_t|double|std::string)>? (\w+)", body, re.M)}
            calls = re.findall(r'\bv\("(\w+)", c\.\w+,.*?((?:Between|AtLeast|Above|OneOf)\([^()]*\)|Limits\{[^{}]*\})\);', body, re.S)
            self.assertEqual(len(calls), body.count('v("'))
            found[struct] = {}
            for name, limit in calls:
                python = limit.replace("{", "(").replace("}", ")").replace(".min", "min").replace(".max", "max")
                found[struct][name] = _options.Option(types[name][1], **eval(python, limits), optional=types[name][0])
        for struct, options in {"DataConfig": _options.DATA, "ModelConfig": _options.MODEL, "TrainConfig": _options.TRAIN}.items():
            self.assertEqual(list(found[struct].items()), list(options.items()))


class FileTest(unittest.TestCase):
    def test_every_type_and_shape_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.safetensors"
            types = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                     torch.float32, torch.float64]
            shapes = [(), (0,), (3,), (2, 0, 3), (5, 3)]
            tensors = {f"{t}{s}é": (torch.randn(s) * 9).to(t) for t, s in itertools.product(types, shapes)}
            tensors["strided"] = torch.randn(4, 6).t()
            _safetensors.write(path, tensors, {"key": "ü"})
            got, metadata = _safetensors.read(path)
            self.assertRegex(metadata.pop("hkt_checksum"), "^xxh3-128:[0-9a-f]{32}$")
            self.assertEqual(metadata, {"key": "ü"})
            self.assertEqual(set(got), set(tensors))
            for name, tensor in tensors.items():
                self.assertEqual(got[name].dtype, tensor.dtype)
                self.assertTrue(torch.equal(got[name], tensor), name)
            self.assertEqual([p.name for p in path.parent.iterdir()], ["x.safetensors"])
            for spans, size in [([[4, 8]], 8), ([[0, 4], [0, 4]], 4), ([[0, 4], [8, 12]], 12)]:  # holes and overlaps
                header = {f"x{i}": {"dtype": "F32", "shape": [1], "data_offsets": span} for i, span in enumerate(spans)}
                text = json.dumps(header).encode()
                path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
                with self.assertRaisesRegex(ValueError, "do not fit; the file is cut or damaged"):
                    _safetensors.read(path)
            with self.assertRaisesRegex(TypeError, "c is torch.complex64; a file holds"):
                _safetensors.write(path, {"c": torch.zeros(1, dtype=torch.complex64)}, {})


if __name__ == "__main__":
    unittest.main(warnings="ignore")
