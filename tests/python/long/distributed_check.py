"""DistributedDataParallel on two processes with Gloo, under torchrun (distributed_worker.py)."""

import pathlib
import subprocess
import sys
import tempfile
import unittest


class DistributedTest(unittest.TestCase):
    def test_two_processes_have_the_gradients_of_one(self):
        worker = pathlib.Path(__file__).with_name("distributed_worker.py")
        with tempfile.TemporaryDirectory() as folder:
            torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
            done = subprocess.run([*torchrun, worker, folder], capture_output=True, text=True, timeout=240)
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
            self.assertTrue((pathlib.Path(folder) / "run/model.safetensors").exists())


if __name__ == "__main__":
    unittest.main(warnings="ignore")
