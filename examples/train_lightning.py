"""Train with multiclass AUC in Lightning: use the loss, the sampler, and early stopping by the metric.

Run with ``python examples/train_lightning.py``. With several devices, add ``strategy="ddp"`` to the trainer and
``sync=True`` to the loss: the sampler then gives each process its own batches.
"""

from tempfile import TemporaryDirectory

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mauc.nn import MAUC, ClassCoverageBatchSampler, MAUCLoss


class Digits(L.LightningModule):
    def __init__(self, class_counts) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
        self.loss = MAUCLoss(class_counts)
        self.metric = MAUC(num_classes=10)

    def training_step(self, batch, _):
        x, y = batch
        return self.loss(self.network(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.metric.update(self.network(x).softmax(1), y)
        # Lightning computes the metric at the end of the epoch, over all batches and processes, and resets it.
        self.log("val_mauc", self.metric, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main() -> None:
    L.seed_everything(0, verbose=False)
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16, dtype=torch.float32)
    X_train, X_val, y_train, y_val = train_test_split(X, torch.tensor(y), stratify=y, random_state=0)
    # Lightning calls the sampler's set_epoch.
    sampler = ClassCoverageBatchSampler(y_train, batch_size=128, min_per_class=2)
    with TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=15,
            accelerator="cpu",
            callbacks=[EarlyStopping("val_mauc", mode="max", patience=3)],
            use_distributed_sampler=False,  # the sampler already gives each process its own batches
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
        )
        trainer.fit(
            Digits(sampler.class_visits),  # class counts of the sampler, which repeats rare classes
            DataLoader(TensorDataset(X_train, y_train), batch_sampler=sampler),
            DataLoader(TensorDataset(X_val, y_val), batch_size=512),
        )
    print(f"epochs {trainer.current_epoch}, next one's order {sampler.epoch}")
    print(f"validation MAUC {trainer.callback_metrics['val_mauc']:.4f}")


if __name__ == "__main__":
    main()
