"""Squared multiclass AUC as a minimax problem, and the stages that solve it: the loss and optimiser of Liu et al."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["DeepAUCLoss", "PPDOptimizer"]


class DeepAUCLoss(nn.Module):
    r"""The squared risk of the multiclass AUC as a saddle point, a sum over samples without any pair.

    For column i let P be the softmax scores of class i and Q those of the other classes, where a sample of class j
    weighs :math:`v / n_j` with :math:`v = 1 / (C (C - 1))`. Means over all pairs split into moments,

    .. math:: \sum_{j \ne i} v \operatorname{mean} (1 - P + Q)^2
        = \tfrac 1 C \left[ \operatorname{Var} P + \operatorname{Var} Q + (1 - \bar P + \bar Q)^2 \right],

    with mean and variance of Q under those weights. A variance is the least mean square about a point, and a square
    the largest of its tangents, :math:`x^2 = \max_\theta 2 \theta x - \theta^2`, hence

    .. math:: R = \min_{a, b} \max_\theta \tfrac 1 C \sum_i \left[ \operatorname{mean} (P - a_i)^2
        + \operatorname{mean} (Q - b_i)^2 + 2 \theta_i (1 - \bar P + \bar Q) - \theta_i^2 \right],

    whose solution is :math:`a_i = \bar P`, :math:`b_i = \bar Q`, :math:`\theta_i = 1 - \bar P + \bar Q`. There it
    equals :class:`mauc.SurrogateRisk` with ``"squared"``, in value and in gradient with respect to the scores.

    Liu, Yuan, Ying, Yang: Stochastic AUC maximization with deep neural networks, ICLR 2020, for two classes; their
    dual variable is :math:`\theta - 1`. Train with :class:`PPDOptimizer`.

    Parameters
    ----------
    num_classes : int
    class_counts : (C,) tensor or sequence, optional
        Size of each class in the training set. With it a sample of class j weighs :math:`N / (B n_j)` in a batch of
        size B, as the authors have it: an unbiased estimate if batches are drawn evenly from the whole set, whichever
        classes they lack. Default: class means of the batch; pairs of classes that it lacks drop out.
    """

    class_counts: Tensor | None

    def __init__(self, num_classes: int, *, class_counts: Any = None) -> None:
        super().__init__()
        self.num_classes = num_classes
        counts = None if class_counts is None else torch.as_tensor(class_counts, dtype=torch.float64)
        self.register_buffer("class_counts", counts)
        self.a = nn.Parameter(torch.zeros(num_classes))
        self.b = nn.Parameter(torch.zeros(num_classes))
        self.dual = nn.Parameter(torch.ones(num_classes))

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the minimax function at the current ``a``, ``b`` and ``dual``."""
        scores = torch.softmax(logits, 1)
        own = scores.gather(1, y[:, None])[:, 0]
        positive, negative, total = self._weights(y, scores.dtype)
        spread = (positive * (own - self.a[y]) ** 2).sum() + (negative * (scores - self.b) ** 2).sum()
        above = own.new_zeros(self.num_classes).index_add(0, y, positive * own)
        gap = total - above + (negative * scores).sum(0)
        value: Tensor = spread + (2.0 * self.dual * gap - total * self.dual**2).sum()
        return value

    def _weights(self, y: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Return the ``(N,)`` weights as positives, the ``(N, C)`` weights as negatives, and their ``(C,)`` sums."""
        if self.class_counts is None:
            ones = torch.ones(len(y), dtype=torch.float64, device=y.device)
            sizes = ones.new_zeros(self.num_classes).index_add(0, y, ones)  # bincount would wait for a GPU
            here = sizes.sign()
        else:
            sizes = self.class_counts / self.class_counts.sum() * len(y)
            here = torch.ones_like(sizes)
        unit, count = sizes.reciprocal()[y], here.sum()
        column = here / (count * (count - 1.0)).clamp(min=1.0)
        total = column * (count - 1.0)
        negative = torch.outer(unit.to(dtype), column.to(dtype)).scatter(1, y[:, None], 0.0)
        return (unit * total[y]).to(dtype), negative, total.to(dtype)


class PPDOptimizer(torch.optim.Optimizer):
    r"""Proximal primal-dual stages: descent on the network, a and b, ascent on the dual variables.

    Stage k adds to the minimax function the pull to where the stage began, :math:`\|v - v_k\|^2 / (2 \gamma)`, which
    makes a problem that is nearly convex where the network's is not. A step from :math:`v` with gradient g is

    .. math:: v^+ = \arg\min_u \; g^\top u + \frac{\|u - v\|_H^2}{2 \eta} + \frac{\|u - v_k\|^2}{2 \gamma}
        = \frac{H v / \eta + v_k / \gamma - g}{H / \eta + 1 / \gamma}, \qquad \theta^+ = \theta + \eta H^{-1} g_\theta

    with :math:`H = \delta + \sqrt{\sum g^2}` by coordinate over the stage (PPD-AdaGrad). A stage ends with the averages
    of its points, where the next begins with a smaller step.

    Liu, Yuan, Ying, Yang: Stochastic AUC maximization with deep neural networks, ICLR 2020. Theirs sets the dual
    variables afresh after a stage, from new samples, and its AdaGrad averages gradients where this one goes on from the
    last point. Their PPD-SG (H = I) is left out: no step was found that serves both 17 and 100 classes.

    Parameters
    ----------
    params : iterable of parameters
        Of the network.
    loss : DeepAUCLoss
        Its a, b and dual are trained too.
    lr : float
        Step :math:`\eta` of the first stage.
    weight_decay : float, default=0.0
        Of the network.
    proximal : float, default=500.0
        :math:`\gamma`; the larger, the weaker the pull.
    decay : float, default=3.0
        What the step is divided by after a stage.
    delta : float, default=1e-6
    """

    def __init__(
        self,
        params: Iterable[Any],
        loss: DeepAUCLoss,
        lr: float,
        *,
        weight_decay: float = 0.0,
        proximal: float = 500.0,
        decay: float = 3.0,
        delta: float = 1e-6,
    ) -> None:
        self.decay = decay
        groups = [
            {"params": list(params)},
            {"params": [loss.a, loss.b], "weight_decay": 0.0},
            {"params": [loss.dual], "weight_decay": 0.0, "ascent": True},
        ]
        defaults = {"lr": lr, "proximal": proximal, "delta": delta, "weight_decay": weight_decay, "ascent": False}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take one step down for the network, a and b, and up for the dual variables."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, p.grad, group)

    def _move(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if group["weight_decay"]:
            g = g.add(p, alpha=group["weight_decay"])
        if not state:
            state["reference"], state["sum"], state["squares"] = p.clone(), torch.zeros_like(p), torch.zeros_like(p)
            state["count"] = 0
        metric = state["squares"].addcmul_(g, g).sqrt().add_(group["delta"])
        rate, pull = group["lr"], 1.0 / group["proximal"]
        if group["ascent"]:
            p.add_(rate * g / metric)
        else:
            # As a move from p: the formula itself would subtract two large numbers.
            p.sub_((g + pull * (p - state["reference"])) / (metric / rate + pull))
        state["sum"].add_(p)
        state["count"] += 1

    @torch.no_grad()
    def end_stage(self) -> None:
        """Go to the averages of the stage, make them the reference of the next, and shorten the step."""
        for group in self.param_groups:
            group["lr"] /= self.decay
            for p in group["params"]:
                state = self.state[p]
                if state:
                    p.copy_(state["sum"] / state["count"])
                    state["reference"].copy_(p)
                    state["sum"].zero_()
                    state["squares"].zero_()
                    state["count"] = 0
