"""Train with multiclass AUC in a plain training loop.

One line of a cross-entropy loop changes: the loss. The sampler puts every class into every batch. The program trains
with both losses on handwritten digits, some of which are rare, and prints the multiclass AUC on test rows.

Run with ``python examples/train_loop.py``.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mauc.nn import MAUC, ClassCoverageBatchSampler, MAUCLoss


def rare_digits():
    """Return digits of which 0 to 4 are frequent and 5 to 9 are rare in training; the other rows are test rows."""
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    order = np.random.default_rng(0).permutation(len(y))
    place = np.array([np.sum(y.numpy()[order[:k]] == y[i].item()) for k, i in enumerate(order)])
    train = order[place < np.where(y[order] < 5, 100, 8)]
    test = np.setdiff1d(order, train)
    return X[train], y[train], X[test], y[test]


def main() -> None:
    X, y, X_test, y_test = rare_digits()
    sampler = ClassCoverageBatchSampler(y, batch_size=100, min_per_class=2)
    loader = DataLoader(TensorDataset(X, y), batch_sampler=sampler)
    # The sampler repeats rare digits, so the loss gets its class counts. Without the sampler: torch.bincount(y).
    for loss_fn in (nn.CrossEntropyLoss(), MAUCLoss(sampler.class_visits)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for epoch in range(30):
            sampler.set_epoch(epoch)
            model.train()
            for x, target in loader:
                optimizer.zero_grad()
                loss = loss_fn(model(x), target)
                loss.backward()
                optimizer.step()
        model.eval()
        metric = MAUC(num_classes=10)
        with torch.no_grad():
            # The loss ranks softmax scores, so the metric gets them; it applies no softmax itself.
            metric.update(model(X_test).softmax(1), y_test)
        print(f"{type(loss_fn).__name__}: test MAUC {metric.compute():.4f}")


if __name__ == "__main__":
    main()
