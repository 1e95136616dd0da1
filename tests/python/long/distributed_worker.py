"""One of two processes of distributed_check.py: the gradients of DistributedDataParallel against those of one process.

Started by torchrun; exit status 0 says that all agree.
"""

import copy
import pathlib
import sys
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

warnings.filterwarnings("ignore", "level . has a single position")

import hkt

D, B, T = 16, 6, 8
LAYERS = {
    # T_l = 8, 4, 2, 1: the last level has one position, and no gradient but 0 in its queries and keys.
    "single position, gates off": {"levels": 4, "hybrid": False},
    "single position": {"levels": 4},
    "psd, rotary": {"levels": 4, "psd": True, "rotary": True, "hybrid": False},
    "one level": {"levels": 1, "hybrid": False},
    "grouped": {"levels": 3, "num_kv_heads": 1, "bias": True, "causal": False},
}


def gradients(module):
    missing = [name for name, p in module.named_parameters() if p.grad is None]
    assert not missing, f"no gradient: {missing}"
    return {name.removeprefix("module."): p.grad.clone() for name, p in module.named_parameters()}


def compare(what, module, args, loss):
    """Half of the batch a process; DistributedDataParallel averages their gradients."""
    rank = dist.get_rank()
    single, parallel = copy.deepcopy(module), copy.deepcopy(module)
    loss(single(*args)).backward()
    want = gradients(single)
    parallel = DistributedDataParallel(parallel)  # find_unused_parameters is False: a missing gradient would hang or raise
    for _ in range(2):  # the second step fails where the first left a parameter unused
        parallel.zero_grad()
        loss(parallel(*(a[rank * B // 2 : (rank + 1) * B // 2] for a in args))).backward()
    for name, got in gradients(parallel).items():
        torch.testing.assert_close(got, want[name], rtol=1e-10, atol=1e-12, msg=lambda m: f"{what}, {name}: {m}")
    return want, parallel


def main(folder):
    dist.init_process_group("gloo")
    assert dist.get_world_size() == 2
    torch.manual_seed(1)  # the same weights and data on both
    for what, options in LAYERS.items():
        module = hkt.HKTAttention(D, 4, dtype=torch.float64, **options)
        x, lengths = torch.randn(B, T, D, dtype=torch.float64), torch.tensor([8, 3, 0, 5, 8, 1])
        want, _ = compare(what, module, (x,), lambda y: y.square().mean())
        compare(f"{what}, lengths", module, (x, lengths), lambda y: y.square().mean())
        if "gates off" in what:
            assert want["query.3.weight"].abs().max() < 1e-12 < want["query.2.weight"].abs().max()
    model = hkt.Classifier(11, 3, T, d_model=D, dtype=torch.float64, dropout=0.0, levels=4)
    _, parallel = compare("classifier", model, (torch.randint(0, 11, (B, T)), lengths), lambda y: y.square().mean())
    if dist.get_rank() == 0:
        hkt.save(parallel, pathlib.Path(folder) / "run")
        saved = hkt.load(pathlib.Path(folder) / "run", dtype=torch.float64)
        for name, tensor in saved.state_dict().items():
            assert torch.equal(tensor, model.state_dict()[name].to(tensor.dtype)), name
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
