"""Lightning: an hkt.Classifier as a LightningModule, trained and validated by a Trainer.

pip install lightning. Data are made here: sequences of 8 to 48 digits with padding; the label is whether the largest digit
comes before the smallest.
"""

import tempfile

import lightning
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import hkt

DIGITS, T = 10, 48


class Order(lightning.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.model = hkt.Classifier(DIGITS, 2, T, d_model=32, num_heads=2, layers=2, d_ff=64, dropout=0.0, hybrid=False)

    def loss(self, batch, name):
        ids, lengths, labels = batch
        logits = self.model(ids, lengths)
        loss = F.cross_entropy(logits, labels)
        self.log(f"{name}_loss", loss)
        self.log(f"{name}_accuracy", (logits.argmax(1) == labels).float().mean(), on_epoch=True)
        return loss

    def training_step(self, batch, _):
        return self.loss(batch, "train")

    def validation_step(self, batch, _):
        self.loss(batch, "validation")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), self.hparams.lr)


def samples(count):
    ids = torch.randint(1, DIGITS - 1, (count, T))
    lengths = torch.randint(8, T + 1, (count,))
    labels = torch.arange(count) % 2
    for row, length, label in zip(ids, lengths, labels, strict=True):
        first, second = torch.randperm(int(length))[:2].sort().values
        row[first], row[second] = (DIGITS - 1, 0) if label else (0, DIGITS - 1)
        row[length:] = 0  # what stands in the padding does not matter
    return TensorDataset(ids, lengths, labels)


def main(epochs=8):
    lightning.seed_everything(1, verbose=False)
    train, validation = DataLoader(samples(1024), 32, shuffle=True), DataLoader(samples(256), 128)
    module = Order()
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", default_root_dir=folder, logger=False,
                                    enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0)
        (first,) = trainer.validate(module, validation, verbose=False)
        trainer.fit(module, train, validation)
        (last,) = trainer.validate(module, validation, verbose=False)
        # Lightning's checkpoint, read back.
        again = Order.load_from_checkpoint(trainer.checkpoint_callback.best_model_path)
    for key in ("validation_loss", "validation_accuracy"):
        print(f"{key}: {first[key]:.3f} -> {last[key]:.3f}")
    return first, last, module, again


if __name__ == "__main__":
    main()
