"""Run folders of `hkt train` as modules, and modules as run folders (docs/run-folder.md)."""

import json
import os
import pathlib
import re
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hkt import _checks, _library, _options, _safetensors
from hkt.attention import HKTAttention
from hkt.classifier import Classifier

# Options of the program that only its ablations need, and their defaults: the modules have them at these alone. (gate_start
# is where training begins, and nothing of a trained model.) Runs of versions before them have none.
ABLATIONS = {"fusion": "learned", "downsample": "conv", "undecimated": False}
_LATER_OPTIONS = {*ABLATIONS, "gate_start"}
# Arguments of HKTAttention that are its attributes, too.
LAYER_OPTIONS = (
    "d_model num_heads levels stride num_kv_heads kernel_size hybrid psd rotary score_gain causal bias dropout".split()
)
_VERSION = _safetensors.VERSION
_CLASSES = "classes"
# How torch.compile and DistributedDataParallel name the module that they wrap.
_COMPILED, _PARALLEL = "_orig_mod", "module"


def load(run_folder: str | os.PathLike[str], *, device: Any = None, dtype: torch.dtype | None = None) -> Classifier:
    """The best weights of a run as a module, in evaluation mode, with the outputs of the program.

    Args:
        run_folder: folder with config.json and model.safetensors, written by `hkt train` or hkt.save.
        device: where to put it.
        dtype: floating type of the parameters; None: float32, as the program.

    Returns:
        A Classifier; ``run_config`` holds the options of the run.

    Raises:
        FileNotFoundError: the folder holds no run, or no weights yet.
        ValueError: a damaged file (the checksum in model.safetensors is compared, where it has one), one of a newer version
            of hkt, an option that this package does not know or have (fusion, downsample and undecimated), a value that the
            program does not take, or weights that do not fit the options. Nothing of a size that only the options state is
            made before.
        TypeError: ``dtype`` or ``device`` of the wrong type.
    """
    _checks.device("device", device)
    _checks.dtype("dtype", dtype)
    folder = pathlib.Path(run_folder)
    config = _read_config(folder / "config.json")
    path = folder / "model.safetensors"
    if not path.exists():
        raise FileNotFoundError(f"no weights in {folder}: there is no {path} before the first evaluation of 'hkt train'")
    tensors, metadata = _safetensors.read(path)
    if _VERSION in metadata:
        _check_version(metadata[_VERSION], path)
    weights = _unprefixed(tensors, path)
    with torch.device("meta"):  # the file says what is allocated, not the options alone
        model = _build(config, weights, folder / "config.json", path, torch.float32 if dtype is None else dtype)
    problems = _misfits(model.state_dict(), weights)
    if problems:
        raise ValueError(f"{path} does not fit the model; {problems}; use the file with the config.json it was trained with")
    model.to_empty(device=torch.get_default_device() if device is None else device)
    model.load_state_dict(weights)
    model.run_config = config
    model.run_classes = metadata.get(_CLASSES)
    return model.eval()


def save(model: nn.Module, run_folder: str | os.PathLike[str], *, config: Mapping[str, Any] | None = None) -> None:
    """Writes config.json and model.safetensors, which hkt.load, `hkt eval` and `hkt predict` read.

    Args:
        model: a Classifier, also inside torch.compile or DistributedDataParallel.
        run_folder: made where it is missing.
        config: options of the program that are not the model's (``{"task": "listops", "preset": "tiny"}``). A model that
            hkt.load made keeps those of its run. Options that stand nowhere have the program's defaults; it refuses
            weights whose vocabulary and classes are not those of the task.

    Raises:
        TypeError: no Classifier, or ``config`` that is no dict.
        ValueError: an option that is unknown, has a value that the program does not take, or is the model's own; parameters
            that are not a Classifier's (those of LoRA, of parametrizations, of quantised modules); a file in the folder's
            place, or a folder in which `hkt train` has worked. Nothing is written then.
    """
    classifier, folder = _unwrap(model), pathlib.Path(run_folder)
    if config is not None and not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; it must be a dict of the program's options and their values")
    options = _run_options(classifier, dict(config or {}))
    weights = {_plain(name): tensor for name, tensor in classifier.state_dict().items()}
    _check_own(classifier, weights)
    for name in ("state.safetensors", "metrics.jsonl"):
        if (folder / name).exists():
            raise ValueError(f"run_folder {folder} is one that 'hkt train' works in (it has {name}); choose another")
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"run_folder {folder}: {path} is a file; name a folder, which is made where it is missing")
    _safetensors.check_types(weights)
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {_VERSION: _library.version, "format": "pt", "config": json.dumps(options)}
    if classifier.run_classes is not None:
        metadata[_CLASSES] = classifier.run_classes
    _safetensors.write(folder / "model.safetensors", weights, metadata)
    text = json.dumps({_VERSION: _library.version, **options}, indent=2) + "\n"
    _safetensors.replace(folder / "config.json", text.encode())


def _plain(name: str) -> str:
    """A parameter's name without what torch.compile (anywhere) and DistributedDataParallel (in front) put into it."""
    parts = [part for part in name.split(".") if part != _COMPILED]
    while parts[0] == _PARALLEL:
        parts.pop(0)
    return ".".join(parts)


def _unprefixed(tensors: Mapping[str, Tensor], path: pathlib.Path) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    full: dict[str, str] = {}
    for name, tensor in tensors.items():
        plain = _plain(name)
        if plain in weights:
            raise ValueError(f"{path} has both {full[plain]} and {name}, which name one parameter; keep one of them")
        weights[plain], full[plain] = tensor, name
    return weights


def _unwrap(model: nn.Module) -> Classifier:
    inner: Any = model
    while not isinstance(inner, Classifier):
        for name in (_COMPILED, _PARALLEL):
            if isinstance(getattr(inner, name, None), nn.Module):
                inner = getattr(inner, name)
                break
        else:
            raise TypeError(f"model is a {type(model).__name__}; it must be an hkt.Classifier")
    return inner


def _check_version(written: Any, path: pathlib.Path) -> None:
    if not isinstance(written, str) or re.fullmatch(r"\d+\.\d+\.\d+", written) is None:
        raise ValueError(f"{path}: {written!r} is not a version of hkt; the file is damaged or not one of ours")
    if [int(x) for x in written.split(".")] > [int(x) for x in _library.version.split(".")]:
        raise ValueError(f"{path} was written by hkt {written}, which is newer than this hkt {_library.version}; update hkt")


def _read_config(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"no run in {path.parent}: there is no {path}; name the folder that 'hkt train' printed")
    if not path.is_file():
        raise ValueError(f"{path}: not a plain file; it holds a run's options")
    try:
        config = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON document: {error}") from error
    if not isinstance(config, dict) or _VERSION not in config:
        raise ValueError(f"{path}: {_VERSION} is missing; not the file of a run")
    _check_version(config.pop(_VERSION), path)
    unknown = sorted(set(config).difference(_options.DATA, _options.MODEL, _options.TRAIN))
    if unknown:
        raise ValueError(f"{path} has options that this hkt for Python does not know: {', '.join(unknown)}; update hkt")
    missing = sorted(set(_options.MODEL) - _LATER_OPTIONS - set(config))
    if missing:
        raise ValueError(f"{path} has no {', '.join(missing)}; not the file of a whole run")
    try:
        config = {name: _options.check(name, value) for name, value in config.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    for name, default in ABLATIONS.items():
        if config.get(name, default) != default:
            raise ValueError(
                f"{path}: {name} is {json.dumps(config[name])}, an ablation that the modules for Python do not have; they "
                f"have {json.dumps(default)} alone; use the program, hkt eval or hkt predict"
            )
    return config


def _count(names: Any, pattern: str) -> int:
    return len({match[1] for match in (re.match(pattern, name) for name in names) if match})


def _build(
    config: dict[str, Any],
    weights: dict[str, Tensor],
    config_path: pathlib.Path,
    path: pathlib.Path,
    dtype: torch.dtype,
) -> Classifier:
    """The module that the options describe; what the task decides is read off the weights' shapes."""

    def size(name: str, dim: int) -> int:
        if name not in weights or weights[name].dim() != 2:
            raise ValueError(f"{path} has no matrix {name}; it does not hold the weights of a classifier")
        return weights[name].size(dim)

    # Where a hand-written file leaves it to the model's name, the weights know.
    stated = {
        "levels": _count(weights, r"blocks\.0\.attention\.query\.(\d+)\."),
        "hybrid": "blocks.0.attention.gate_logits" in weights,
        "kv_heads": config["heads"],
        "rgb": False,  # runs of versions before it was an option have none
    } | {key: value for key, value in config.items() if value is not None}
    layers = _count(weights, r"blocks\.(\d+)\.")
    if layers != stated["layers"] or stated["levels"] == 0:
        problem = "it has no queries" if stated["levels"] == 0 else f"it has {layers} blocks instead of {stated['layers']}"
        raise ValueError(f"{path} does not fit the model; {problem}; use the file with the config.json it was trained with")
    vocabulary = None if stated["rgb"] else size("embedding.weight", 0)
    classes, seq_len = size("head.weight", 0), None if stated["rotary"] else size("position.weight", 0)
    # Of mha-wide d_ff is the width before it is widened.
    d_ff = size("blocks.0.ffn.0.weight", 0) if stated["model"] == "mha-wide" else stated["d_ff"]
    try:
        return Classifier(
            vocabulary,
            classes,
            seq_len,
            rgb=stated["rgb"],
            d_model=stated["d_model"],
            num_heads=stated["heads"],
            num_kv_heads=stated["kv_heads"],
            layers=stated["layers"],
            d_ff=d_ff,
            levels=stated["levels"],
            stride=stated["stride"],
            kernel_size=stated["kernel_size"],
            hybrid=stated["hybrid"],
            psd=stated["psd"],
            rotary=stated["rotary"],
            score_gain=stated["score_gain"],
            causal=not stated["bidirectional"],
            bias=stated["bias"],
            dropout=stated["dropout"],
            dtype=dtype,
        )
    except ValueError as error:
        raise ValueError(f"{config_path}: {error}") from error


def _misfits(state: Mapping[str, Tensor], weights: Mapping[str, Any]) -> str:
    problems = []
    for title, names in [("missing", set(state) - set(weights)), ("not of the model", set(weights) - set(state))]:
        if names:
            problems.append(f"{title}: {', '.join(sorted(names))}")
    for name in sorted(set(state) & set(weights)):
        if weights[name].shape != state[name].shape:
            problems.append(f"{name} is {list(weights[name].shape)} instead of {list(state[name].shape)}")
        elif not weights[name].is_floating_point():
            problems.append(f"{name} is {weights[name].dtype}")
    return "; ".join(problems)


def _check_own(model: Classifier, weights: Mapping[str, Any]) -> None:
    """That these are the parameters of such a classifier, and not of what stands in its modules' places."""
    block: Any = model.blocks[0]
    options = {name: getattr(block.attention, name) for name in LAYER_OPTIONS}
    with warnings.catch_warnings():  # said when the model was made
        warnings.simplefilter("ignore")
        plain = Classifier(
            model.vocabulary,
            model.classes,
            model.seq_len,
            rgb=model.rgb,
            layers=len(model.blocks),
            d_ff=block.d_ff,
            device="meta",
            **options,
        )
    problems = _misfits(plain.state_dict(), weights)
    if problems:
        raise ValueError(
            f"model has other parameters than a Classifier; {problems}; merge LoRA (peft: merge_and_unload), remove "
            "parametrizations, and save before quantising"
        )


def _run_options(model: Classifier, given: dict[str, Any]) -> dict[str, Any]:
    """Every option that is known, in the program's names."""
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"config has {name!r} of type {type(name).__name__}; its keys must be names of options")
    own = sorted(set(given).intersection(_options.MODEL))
    if own:
        raise ValueError(f"config has {', '.join(own)}, which the model decides")
    unknown = sorted(set(given).difference(_options.DATA, _options.TRAIN))
    if unknown:
        known = ", ".join([*_options.DATA, *_options.TRAIN])
        raise ValueError(f"config has {', '.join(unknown)}, which the program does not know; it knows {known}")
    try:
        given = {name: _options.check(name, value) for name, value in given.items()}
    except (TypeError, ValueError) as error:
        raise type(error)(f"config: {error}") from error
    if model.seq_len is not None and given.get("seq_len", model.seq_len) != model.seq_len:
        raise ValueError(f"config has seq_len = {given['seq_len']}; the model has positions for {model.seq_len}")
    if given.get("rgb", model.rgb) != model.rgb:
        raise ValueError(f"config has rgb = {given['rgb']}; the model has {model.rgb}")
    run = {**(model.run_config or {}), **given}
    block: Any = model.blocks[0]
    layer: HKTAttention = block.attention
    hierarchical = layer.levels > 1
    name = ("hkt" if layer.hybrid else "hkt-fusion") if hierarchical else ("mha-conv" if layer.hybrid else "mha")
    wide = run.get("model") == "mha-wide"
    options: dict[str, Any] = {
        "model": run.get("model", name),
        "levels": layer.levels,
        "stride": layer.stride,
        "kernel_size": layer.kernel_size,
        "hybrid": layer.hybrid,
        "psd": layer.psd,
        "bidirectional": not layer.causal,
        "rotary": layer.rotary,
        "bias": layer.bias,
        "score_gain": layer.score_gain,
        "d_model": layer.d_model,
        "heads": layer.num_heads,
        "kv_heads": layer.num_kv_heads,
        "layers": len(model.blocks),
        "d_ff": run["d_ff"] if wide else block.d_ff,
        "dropout": model.dropout,
    }
    if model.seq_len is not None and (given or "seq_len" not in run):  # else what the run said, where null is "as the task"
        options["seq_len"] = model.seq_len
    if model.rgb:
        options["rgb"] = True
    run.update(options)
    try:
        return {key: _options.check(key, run[key]) for key in (*_options.DATA, *_options.MODEL, *_options.TRAIN) if key in run}
    except (TypeError, ValueError) as error:
        raise ValueError(f"model is none that the program has; {error}") from error
