"""Train with multiclass AUC in several processes, as if they were one.

Each process has its own batches. With ``sync=True`` every process gathers the logits of all, so the loss compares the
samples of all processes: its value and gradient are those of one process on the union of the batches.

Run with ``torchrun --standalone --nproc-per-node 2 examples/train_distributed.py``.
"""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from mauc.nn import MAUC, ClassCoverageBatchSampler, MAUCLoss


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    X_train, y_train, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]

    # The sampler gives this process its own batches; it reads rank and world size from torch.distributed.
    sampler = ClassCoverageBatchSampler(y_train, batch_size=64)
    loader = DataLoader(TensorDataset(X_train, y_train), batch_sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    # The sampler repeats rare classes, so the loss gets its class counts. Without the sampler: torch.bincount(y_train).
    loss_fn = MAUCLoss(sampler.class_visits, sync=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, target in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), target)
            loss.backward()
            optimizer.step()

    # Each process scores a part of the test rows; compute() combines the parts.
    metric = MAUC(num_classes=10)
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    with torch.no_grad():
        metric.update(model(X_test[mine]).softmax(1), y_test[mine])
    score = metric.compute()
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} processes, {len(sampler)} batches each, last loss {loss:.4f}")
        print(f"test MAUC {score:.4f}")
    dist.barrier()
    # DistributedDataParallel must be freed before its process group, or it may hang.
    del model, optimizer, loss, metric
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
