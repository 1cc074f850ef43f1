"""The recommended loss, its rivals, and forms of its limit; those are written for clarity, not for speed."""

import torch
from torch import Tensor
from torch.nn import functional as F

from experiments.losses import effective_number_weights
from mauc.nn import MAUCLoss

__all__ = ["LOSSES", "Loss", "make"]


class Loss:
    """A loss of ``(N, C)`` logits and ``(N,)`` classes; what changes between epochs is kept on the device."""

    cosine = False
    """Whether the last layer of the network has to give cosines."""

    def __init__(self, counts: Tensor, **settings: float) -> None:
        self.counts = counts.double()
        self.log_prior = (self.counts / self.counts.sum()).log().float()
        self.settings = settings
        self.progress = torch.zeros((), device=counts.device)

    def begin_epoch(self, share: float) -> None:
        """Set the share of the epochs that is over."""
        self.progress.fill_(share)

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError  # by each loss


class Adjusted(Loss):
    """Cross-entropy of logits plus τ log p; τ = 0 is cross-entropy."""

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(z + self.settings["tau"] * self.log_prior, y)


class ClassWeighted(Loss):
    """Cross-entropy, each class with the weight N / (C n_i): scikit-learn's ``class_weight="balanced"``."""

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(z, y, weight=(self.counts.sum() / (len(self.counts) * self.counts)).float())


class VectorScaling(Loss):
    """VS loss (Kini et al., NeurIPS 2021): cross-entropy of Δ_i z_i + τ log p_i with Δ_i = (n_i / n_max)^γ."""

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        scale = ((self.counts / self.counts.max()) ** self.settings["gamma"]).float()
        return F.cross_entropy(scale * z + self.settings["tau"] * self.log_prior, y)


class BalancedFocal(Loss):
    """Class-balanced focal loss on sigmoid scores (Cui et al., CVPR 2019)."""

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        gamma, weight = self.settings["gamma"], effective_number_weights(self.counts, self.settings["beta"]).float()
        own = F.one_hot(y, z.shape[1]).to(z.dtype)
        signed = torch.where(own > 0, z, -z)
        each = -torch.exp(gamma * F.logsigmoid(-signed)) * F.logsigmoid(signed)
        return (weight[y][:, None] * each).sum() / len(y)


class LDAM(Loss):
    """Margins n_i^(-1/4), and class weights for the last fifth of the epochs (Cao et al., NeurIPS 2019)."""

    cosine = True

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        margin = (self.settings["margin"] * (self.counts.min() / self.counts) ** 0.25).float()
        weight = effective_number_weights(self.counts, 0.9999).float()
        weight = torch.where(self.progress < 0.8, torch.ones_like(weight), weight)
        moved = z - F.one_hot(y, z.shape[1]) * margin[y][:, None]
        each = F.cross_entropy(self.settings["scale"] * moved, y, reduction="none")
        return (weight[y] * each).sum() / weight[y].sum()


class Limited(Loss):
    """Adjusted cross-entropy plus Σ log(1 + R_i) / max(K, 10) of K classes, whose slope is limited.

    The slope of the pair term is at most ``rho`` times the cross-entropy's, and at most ``weight`` times its own. The
    sum is divided by 1 + q, with q the length of the one over that of the other. ``free=1`` leaves this out: steps are
    up to 1 + ``rho`` times as long. ``rows=1`` limits the slope of each row by itself, to ``rho`` times the
    cross-entropy's mean slope of a row.
    """

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        alpha, own = self.settings["alpha"], F.one_hot(y, s.shape[1]).to(s.dtype)
        counts = own.sum(0)
        here = (counts > 0).to(s.dtype)
        of_each = own / counts.clamp_min(1)
        positive = (of_each * torch.exp(-alpha * s)).sum(0)
        negative = (of_each.t() @ torch.exp(alpha * s)).fill_diagonal_(0.0)  # of class j in column i
        risk = here * positive * negative.sum(0) / (here.sum() - 1).clamp_min(1)
        return torch.log1p(risk).sum() / here.sum().clamp_min(10.0)

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        free = z.detach().requires_grad_(True)
        first = F.cross_entropy(free + self.log_prior, y)
        (g1,) = torch.autograd.grad(first, free)
        (g2,) = torch.autograd.grad(self.pair_term(torch.softmax(free, 1), y), free)
        n1, n2 = g1.norm(), g2.norm()
        if self.settings.get("rows"):
            n1, n2 = n1 / len(y) ** 0.5, g2.norm(dim=1, keepdim=True)
        g2 = (self.settings["rho"] * n1 / n2.clamp_min(1e-12)).clamp_max(self.settings["weight"]) * g2
        share = 1.0 if self.settings.get("free") else g1.norm() / (g1.norm() + g2.norm()).clamp_min(1e-12)
        total = share * (z * (g1 + g2)).sum()  # has the slope of both
        return total - total.detach() + first.detach()


class Recommended(Loss):
    """:class:`mauc.nn.MAUCLoss` with nothing set but the class counts."""

    def __init__(self, counts: Tensor, **settings: float) -> None:
        super().__init__(counts, **settings)
        self.module = MAUCLoss(counts, **settings).to(counts.device)

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        return self.module(z, y)


LOSSES: dict[str, type[Loss]] = {
    "mauc": Recommended,
    "adjusted": Adjusted,
    "weighted": ClassWeighted,
    "vs": VectorScaling,
    "cb-focal": BalancedFocal,
    "ldam": LDAM,
    "limited": Limited,
}


def make(method: str, counts: Tensor) -> Loss:
    """Return the loss of a name such as ``"limited:alpha=8,weight=2,rho=1"``."""
    name, _, settings = method.partition(":")
    pairs = (each.split("=") for each in settings.split(",") if each)
    return LOSSES[name](counts, **{key: float(value) for key, value in pairs})
