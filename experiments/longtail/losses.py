"""Candidates for the recommended loss, and their rivals.

Every candidate is adjusted cross-entropy plus a pair term of softmax scores; they differ in the pair term. All of them
are written for clarity, by all pairs of a batch or by means over its classes.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from experiments.losses import effective_number_weights
from mauc.nn import MAUCLoss

__all__ = ["CANDIDATES", "RIVALS", "Loss", "make"]


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


class TwoTerms(Loss):
    """Adjusted cross-entropy plus ``weight`` times a pair term; subclasses have the pair term of scores.

    ``tau`` is the factor of the log class frequencies in the cross-entropy, 1 by default.
    """

    def scores(self, z: Tensor) -> Tensor:
        return torch.softmax(z, 1)

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError  # by each loss

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        adjusted = z + self.settings.get("tau", 1.0) * self.log_prior
        return F.cross_entropy(adjusted, y) + self.settings["weight"] * self.pair_term(self.scores(z), y)


class Pairs(TwoTerms):
    """The mean of ℓ over all pairs of samples, each ordered pair of classes alike."""

    ell: Callable[[Tensor, Any], Tensor]

    def alpha(self) -> Any:
        return self.settings["alpha"]

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        own = s.gather(1, y[:, None])
        gap = own - s[:, y].t()  # [m, n]: score of sample m minus that of sample n, both for the class of m
        counts = F.one_hot(y, s.shape[1]).to(s.dtype).sum(0)
        present = (counts > 0).to(s.dtype).sum()
        weight = (y[:, None] != y[None, :]) / (counts[y][:, None] * counts[y][None, :])
        return (weight * type(self).ell(gap, self.alpha())).sum() / (present * (present - 1)).clamp_min(1)


class Exponential(Pairs):
    """ℓ(t) = exp(−αt)."""

    ell = staticmethod(lambda t, a: torch.exp(-a * t))


class GrowingExponential(Exponential):
    """The same; α grows from a quarter of its value to the whole."""

    def alpha(self) -> Any:
        return self.settings["alpha"] * (0.25 + 0.75 * self.progress)


class Logistic(Pairs):
    """ℓ(t) = log(1 + exp(−αt)) / log 2, of bounded slope."""

    ell = staticmethod(lambda t, a: F.softplus(-a * t) / 0.6931471805599453)


class Squared(Pairs):
    """ℓ(t) = (1 − t)², of bounded slope on bounded scores."""

    ell = staticmethod(lambda t, a: (1 - t) ** 2)


class LogOdds(Logistic):
    """The logistic loss of log-odds."""

    def scores(self, z: Tensor) -> Tensor:
        log_p = torch.log_softmax(z, 1)
        return log_p - torch.log1p(-log_p.exp().clamp_max(1 - 1e-6))


class SigmoidScores(Exponential):
    """The exponential loss of sigmoid scores."""

    def scores(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)


class LogRisk(TwoTerms):
    """The logarithm of the exponential risk: ``"class"``, its mean over classes; ``"pair"``, over pairs of classes;
    ``"whole"``, of the whole risk. Divided by α, so that its slope in any score sums to at most 1."""

    over = "class"

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        alpha = self.settings["alpha"]
        if self.over == "pair":
            positive, means, apart, K = self.means(s, y)
            both = torch.where(apart > 0, positive[None, :] * means, 1.0)
            return both.log().sum() / (K * (K - 1)).clamp_min(1) / alpha
        risk, K = self.by_class(s, y)
        if self.over == "whole":
            whole = risk.sum() / K
            return torch.where(whole > 0, whole, 1.0).log() / alpha
        return torch.where(risk > 0, risk, 1.0).log().sum() / K / alpha

    def means(self, s: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Return means of exp(−αs) of class i in column i and of exp(αs) of class j, the pairs and the classes."""
        alpha, own = self.settings["alpha"], F.one_hot(y, s.shape[1]).to(s.dtype)
        counts = own.sum(0)
        here = (counts > 0).to(s.dtype)
        n = counts.clamp_min(1)
        positive = (own * torch.exp(-alpha * s)).sum(0) / n
        means = (own / n).t() @ torch.exp(alpha * s)
        apart = here[:, None] * here[None, :] * (1 - torch.eye(len(n), device=s.device))
        return positive, means, apart, here.sum()

    def by_class(self, s: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the risk of each class against the mean of the others, 0 if absent, and the number of classes."""
        positive, means, apart, K = self.means(s, y)
        return positive * (apart * means).sum(0) / (K - 1).clamp_min(1), K


class LogRiskByPair(LogRisk):
    over = "pair"


class LogRiskWhole(LogRisk):
    over = "whole"


class SoftRisk(LogRisk):
    """log(1 + R_i), the mean over classes, or log(1 + R): as the risk where it is small, as its logarithm where it is
    large. Of a single pair of samples it would be the logistic loss."""

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        risk, K = self.by_class(s, y)
        return torch.log1p(risk.sum() / K) if self.over == "whole" else torch.log1p(risk).sum() / K


class SoftRiskWhole(SoftRisk):
    over = "whole"


class SoftFixed(SoftRisk):
    """log(1 + R_i), divided by all classes instead of those present."""

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        risk, _ = self.by_class(s, y)
        return torch.log1p(risk).sum() / s.shape[1]


class SoftShare(SoftRisk):
    """log(1 + R_i) times the mean over classes of min(1, expected rows of the class in a batch), to a power."""

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        share = (len(y) * self.counts / self.counts.sum()).clamp_max(1.0).mean() ** self.settings.get("power", 1.0)
        return share.to(s.dtype) * super().pair_term(s, y)


class SoftShrunk(SoftRisk):
    """log(1 + R_i), each class with weight n_i / (n_i + ``rows``) for its n_i training rows."""

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        positive, means, apart, K = self.means(s, y)
        w = (self.counts / (self.counts + self.settings["rows"])).to(s.dtype)
        weights = apart * w[:, None]
        risk = positive * (weights * means).sum(0) / weights.sum(0).clamp_min(1e-12)
        return (w * torch.log1p(risk)).sum() / K


class SoftOdds(TwoTerms):
    """log(1 + R_i) of log-odds, the mean over classes; computed in logarithms, since log-odds have no bound."""

    def scores(self, z: Tensor) -> Tensor:
        """Return log p − log(1 − p). For the largest p of a row, 1 − p is the sum of the others."""
        log_sum = torch.logsumexp(z, 1, keepdim=True)
        log_p, top = z - log_sum, z.argmax(1, keepdim=True)
        others = torch.logsumexp(z.scatter(1, top, -1e9), 1, keepdim=True) - log_sum
        return log_p - torch.log1p(-log_p.exp().clamp_max(0.75)).scatter(1, top, others)

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        own, scaled = F.one_hot(y, s.shape[1]).to(s.dtype), self.settings["alpha"] * s
        n, far = own.sum(0), 1e9
        K, share = (n > 0).to(s.dtype).sum(), own / n.clamp_min(1)
        low = (-scaled - far * (1 - own)).amax(0).detach()  # of the class's own rows
        high = (scaled - far * own).amax(0).detach()  # of the other rows
        positive = (share * torch.exp((-scaled - low).clamp_max(0.0))).sum(0)
        means = share.t() @ torch.exp((scaled - high - far * own).clamp_max(0.0))
        negative = means.sum(0) / (K - 1).clamp_min(1)
        there = (n > 0) & (negative > 0)
        log_risk = torch.where(there, positive * negative, 1.0).log() + torch.where(there, low + high, 0.0)
        return torch.where(there, F.softplus(log_risk), 0.0).sum() / K


class SoftRows(LogRisk):
    """The logistic loss of each sample against the others' soft maximum in its column: log(1 + exp(−α(s − T_i))) with
    exp(αT_i) the mean of exp(αs) over the other classes; each class alike."""

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        alpha = self.settings["alpha"]
        _, means, apart, K = self.means(s, y)
        others = (apart * means).sum(0) / (K - 1).clamp_min(1)
        log_others = torch.where(others > 0, others, 1.0).log()
        each = F.softplus(log_others[y] - alpha * s.gather(1, y[:, None])[:, 0])
        counts = F.one_hot(y, s.shape[1]).to(s.dtype).sum(0)
        return (each / counts[y]).sum() / K / 0.6931471805599453 * (K > 1)


class SoftOddsRows(SoftOdds):
    """The logistic loss of each sample's log-odds against the others' soft maximum in its column; each class alike."""

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        own, scaled = F.one_hot(y, s.shape[1]).to(s.dtype), self.settings["alpha"] * s
        n, far = own.sum(0), 1e9
        K = (n > 0).to(s.dtype).sum()
        high = (scaled - far * own).amax(0).detach()  # of the other rows
        means = (own / n.clamp_min(1)).t() @ torch.exp((scaled - high - far * own).clamp_max(0.0))
        negative = means.sum(0) / (K - 1).clamp_min(1)
        log_others = torch.where(negative > 0, negative, 1.0).log() + high
        each = F.softplus(log_others[y] - scaled.gather(1, y[:, None])[:, 0])
        return (each / n[y]).sum() / K / 0.6931471805599453 * (K > 1)


class Huber(Pairs):
    """ℓ(t) = exp(−αt) where t ≥ 0, and its tangent 1 − αt below."""

    ell = staticmethod(lambda t, a: torch.where(t > 0, torch.exp(-a * t.clamp_min(0)), 1 - a * t))


class Scaled(Exponential):
    """The gradient of the pair term is scaled to ``weight`` times the norm of the cross-entropy's."""

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        free = z.detach().requires_grad_(True)
        first = F.cross_entropy(free + self.log_prior, y)
        (g1,) = torch.autograd.grad(first, free)
        (g2,) = torch.autograd.grad(self.pair_term(self.scores(free), y), free)
        factor = self.settings["weight"] * g1.norm() / g2.norm().clamp_min(1e-12)
        return (z * (g1 + factor * g2)).sum()


class Limited(SoftRisk):
    """Adjusted cross-entropy and a pair term whose slope is at most ``rho`` times the cross-entropy's.

    The sum is divided by 1 + q, with q the length of the one over that of the other. ``free=1`` leaves this out: steps
    are up to 1 + ``rho`` times as long. ``rows=1`` limits the slope of each row by itself, to ``rho`` times the
    cross-entropy's mean slope of a row.
    """

    def pair_term(self, s: Tensor, y: Tensor) -> Tensor:
        risk, K = self.by_class(s, y)
        return torch.log1p(risk).sum() / K.clamp_min(10.0)

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        free = z.detach().requires_grad_(True)
        first = F.cross_entropy(free + self.log_prior, y)
        (g1,) = torch.autograd.grad(first, free)
        pair = self.pair_term(self.scores(free), y)
        (g2,) = torch.autograd.grad(pair, free)
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


CANDIDATES: dict[str, type[Loss]] = {
    "mauc": Recommended,
    "exponential": Exponential,
    "growing": GrowingExponential,
    "logistic": Logistic,
    "squared": Squared,
    "log-odds": LogOdds,
    "sigmoid": SigmoidScores,
    "log-risk": LogRisk,
    "log-risk-pair": LogRiskByPair,
    "log-risk-whole": LogRiskWhole,
    "soft-class": SoftRisk,
    "soft-whole": SoftRiskWhole,
    "soft-fixed": SoftFixed,
    "soft-share": SoftShare,
    "soft-shrunk": SoftShrunk,
    "soft-odds": SoftOdds,
    "soft-rows": SoftRows,
    "soft-odds-rows": SoftOddsRows,
    "huber": Huber,
    "scaled": Scaled,
    "limited": Limited,
}
RIVALS: dict[str, type[Loss]] = {
    "adjusted": Adjusted, "weighted": ClassWeighted, "vs": VectorScaling, "cb-focal": BalancedFocal, "ldam": LDAM,
}  # fmt: skip


def make(method: str, counts: Tensor) -> Loss:
    """Return the loss of a name such as ``"logistic:alpha=16,weight=2"``."""
    name, _, settings = method.partition(":")
    known = {**CANDIDATES, **RIVALS}
    pairs = (each.split("=") for each in settings.split(",") if each)
    return known[name](counts, **{key: float(value) for key, value in pairs})
