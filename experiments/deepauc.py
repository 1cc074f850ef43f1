"""Squared multiclass AUC as a minimax problem, and the stages that solve it: the loss and optimiser of Liu et al."""

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn

from mauc._validation import PAIRS, check_choice, check_not_negative, check_real, check_whole, invalid
from mauc.nn._loss.batch import Weights, exact_dtype, weigh
from mauc.nn._loss.checks import check_input, count_vector
from mauc.nn.modules import ExactBuffers

__all__ = ["DeepAUCLoss", "PPDOptimizer"]

METHODS = ("sgd", "adagrad")


class DeepAUCLoss(ExactBuffers):
    r"""The squared risk of the multiclass AUC as a saddle point, a sum over samples without any pair.

    For column i let P be the scores of class i and Q those of the other classes, where a sample of class j weighs
    :math:`v_{ij} / n_j`, and :math:`V_i = \sum_j v_{ij}`. Means over all pairs split into moments,

    .. math:: \sum_{j \ne i} v_{ij} \operatorname{mean} (\alpha - P + Q)^2
        = V_i \left[ \operatorname{Var} P + \operatorname{Var} Q + (\alpha - \bar P + \bar Q)^2 \right],

    with mean and variance of Q under those weights: the spread of the classes' own means is part of the variance. A
    variance is the least mean square about a point, and a square the largest of its tangents,
    :math:`x^2 = \max_\theta 2 \theta x - \theta^2`, hence

    .. math:: R = \min_{a, b} \max_\theta \sum_i V_i \left[ \operatorname{mean} (P - a_i)^2
        + \operatorname{mean} (Q - b_i)^2 + 2 \theta_i (\alpha - \bar P + \bar Q) - \theta_i^2 \right],

    whose solution is :math:`a_i = \bar P`, :math:`b_i = \bar Q`, :math:`\theta_i = \alpha - \bar P + \bar Q`. There it
    equals :class:`mauc.SurrogateRisk` with ``"squared"``, in value and in gradient with respect to the scores.

    Liu, Yuan, Ying, Yang: Stochastic AUC maximization with deep neural networks, ICLR 2020, for two classes and
    :math:`\alpha = 1`; their dual variable is :math:`\theta - \alpha`. Train with :class:`PPDOptimizer`.

    Parameters
    ----------
    num_classes : int
    alpha : float, default=1.0
        Margin.
    activation : {"softmax", "sigmoid", "identity"}, default="softmax"
        What makes scores of logits.
    pairs : {"ovo", "ova"}, default="ovo"
    class_counts : (C,) tensor or sequence, optional
        Size of each class in the training set. With it a sample of class j weighs :math:`N / (B n_j)` in a batch of
        size B, as the authors have it: an unbiased estimate if batches are drawn evenly from the whole set, whichever
        classes they lack. Default: class means of the batch; pairs of classes that it lacks drop out, as in
        :class:`mauc.nn.MAUCLoss`.
    ignore_index : int, default=-100

    Attributes
    ----------
    a, b : (C,) parameters
        To be minimised over.
    dual : (C,) parameter
        :math:`\theta`, to be maximised over.

    Notes
    -----
    Called with ``(N, C)`` logits and ``(N,)`` classes; O(N·C) time and memory.

    Examples
    --------
    >>> import torch
    >>> from experiments.deepauc import DeepAUCLoss
    >>> from mauc.nn.functional import mauc_loss
    >>> logits, y = torch.eye(3, dtype=torch.float64)[[0, 1, 2, 2, 0]], torch.tensor([0, 1, 2, 0, 1])
    >>> loss = DeepAUCLoss(3).double().solve(logits, y)
    >>> round(loss(logits, y).item(), 6), round(mauc_loss(logits, y, surrogate="squared", log_loss=0.0).item(), 6)
    (0.713188, 0.713188)
    """

    class_counts: Tensor | None

    def __init__(
        self,
        num_classes: int,
        *,
        alpha: float = 1.0,
        activation: str = "softmax",
        pairs: str = "ovo",
        class_counts: Any = None,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        self.num_classes = check_whole("num_classes", num_classes, least=2)
        self.alpha = check_real("alpha", alpha, low=0)
        self.activation = check_choice("activation", activation, ("softmax", "sigmoid", "identity"))
        self.pairs = check_choice("pairs", pairs, PAIRS)
        self.ignore_index = ignore_index
        counts = None if class_counts is None else count_vector(class_counts, self.num_classes).to(torch.float64)
        self.register_buffer("class_counts", counts, persistent=False)
        self.a = nn.Parameter(torch.zeros(self.num_classes))
        self.b = nn.Parameter(torch.zeros(self.num_classes))
        self.dual = nn.Parameter(torch.full((self.num_classes,), self.alpha))

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The minimax function at the current ``a``, ``b`` and ``dual``."""
        scores, batch = self._prepare(logits, target)
        own = scores.gather(1, batch.y[:, None])[:, 0]
        positive, negative = self._weights(batch, scores.dtype)
        total = batch.total.to(scores.dtype)
        a, b, dual = (p.to(scores.dtype) for p in (self.a, self.b, self.dual))
        spread = (positive * (own - a[batch.y]) ** 2).sum() + (negative * (scores - b) ** 2).sum()
        gap = total * self.alpha - _by_class(batch.y, positive * own, self.num_classes) + (negative * scores).sum(0)
        value: Tensor = spread + (2.0 * dual * gap - total * dual**2).sum()
        return value

    @torch.no_grad()
    def solve(self, logits: Tensor, target: Tensor) -> "DeepAUCLoss":
        """Put ``a``, ``b`` and ``dual`` at the saddle point of these logits; those of absent classes stay."""
        scores, batch = self._prepare(logits, target)
        own = scores.gather(1, batch.y[:, None])[:, 0]
        positive, negative = self._weights(batch, scores.dtype)
        total = batch.total.to(scores.dtype)
        above, below = _by_class(batch.y, positive, self.num_classes), negative.sum(0)
        high = _by_class(batch.y, positive * own, self.num_classes)
        low = (negative * scores).sum(0)
        for parameter, value, weight in (
            (self.a, high / above, above),
            (self.b, low / below, below),
            (self.dual, self.alpha - (high - low) / total, total),
        ):
            parameter.copy_(torch.where(weight > 0, value, parameter.to(value.dtype)))
        return self

    def _prepare(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Weights]:
        whole = check_input(logits, target, None, self.ignore_index)
        if logits.shape[1] != self.num_classes:
            came = f"{logits.shape[1]} columns"
            raise invalid("logits", f"must have num_classes={self.num_classes} columns", came, "pass one per class")
        valid = None if whole else target != self.ignore_index
        batch = self._of_batch(target.long(), valid) if self.class_counts is None else self._of_set(target, valid)
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        clean = logits if valid is None else torch.where(valid[:, None], logits, 0.0)
        if self.activation == "softmax":
            return torch.softmax(clean, 1, dtype=wide), batch
        return torch.sigmoid(clean.to(wide)) if self.activation == "sigmoid" else clean.to(wide), batch

    def _of_batch(self, target: Tensor, valid: Tensor | None) -> Weights:
        return weigh(
            target,
            self.num_classes,
            weight=None,
            valid=valid,
            pairs=self.pairs,
            class_counts=None,
        )

    def _of_set(self, target: Tensor, valid: Tensor | None) -> Weights:
        """Weights by the sizes of the classes in the whole set: what a class lacks in a batch, it has in others."""
        assert self.class_counts is not None  # the caller looked
        exact = exact_dtype(target.device)
        share = (self.class_counts / self.class_counts.sum()).to(exact)
        here = torch.ones(target.shape, dtype=exact, device=target.device) if valid is None else valid.to(exact)
        y = target.long() if valid is None else torch.where(valid, target.long(), 0)
        counted = here.sum()
        unit = here / (share[y] * counted.clamp(min=1.0))
        classes = self.num_classes
        if self.pairs == "ovo":
            column = torch.full_like(share, 1.0 / (classes * (classes - 1)))
            row = unit
        else:
            column, row = 1.0 / (classes * (1.0 - share)), unit * share[y]
        total = counted.sign().expand(classes) / classes  # 0 where no sample counts
        return Weights(y, unit, row, column, None, total, here, share)

    def _weights(self, batch: Weights, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """``(N,)`` of the scores as positives of their own column, ``(N, C)`` as negatives of the others."""
        return (batch.unit * batch.total[batch.y]).to(dtype), batch.negative(dtype)

    def extra_repr(self) -> str:
        """The settings."""
        priors = "batch" if self.class_counts is None else "class_counts"
        shown = f"{self.num_classes}, alpha={self.alpha:g}, activation={self.activation!r}, pairs={self.pairs!r}"
        return f"{shown}, priors from {priors}"


def _by_class(y: Tensor, values: Tensor, n_classes: int) -> Tensor:
    return values.new_zeros(n_classes).index_add(0, y, values)


class PPDOptimizer(torch.optim.Optimizer):
    r"""Proximal primal-dual stages: descent on the network, a and b, ascent on the dual variables.

    Stage k adds to the minimax function the pull to where the stage began, :math:`\|v - v_k\|^2 / (2 \gamma)`, which
    makes a problem that is nearly convex where the network's is not. A step from :math:`v` with gradient g is

    .. math:: v^+ = \arg\min_u \; g^\top u + \frac{\|u - v\|_H^2}{2 \eta} + \frac{\|u - v_k\|^2}{2 \gamma}
        = \frac{H v / \eta + v_k / \gamma - g}{H / \eta + 1 / \gamma}, \qquad \theta^+ = \theta + \eta H^{-1} g_\theta

    with :math:`H = I` (PPD-SG), or :math:`\delta + \sqrt{\sum g^2}` by coordinate over the stage (PPD-AdaGrad). A
    stage ends with the averages of its points, where the next begins with a smaller step and, by default, for longer.

    Liu, Yuan, Ying, Yang: Stochastic AUC maximization with deep neural networks, ICLR 2020. Theirs sets the dual
    variables afresh after a stage, from new samples (:meth:`DeepAUCLoss.solve` does), and its AdaGrad averages
    gradients where this one goes on from the last point.

    Parameters
    ----------
    params : iterable of parameters or of dicts
        Of the network; those of the loss are left out if they are among them.
    loss : DeepAUCLoss
    lr : float, default=0.1
        Step :math:`\eta` of the first stage.
    proximal : float, default=500.0
        :math:`\gamma`; the larger, the weaker the pull.
    method : {"sgd", "adagrad"}, default="sgd"
    stage_steps : int, optional
        Steps of the first stage. Default: stages end when you call :meth:`end_stage`.
    decay : float, default=3.0
        What the step is divided by after a stage, at least 1.
    growth : float, default=3.0
        How much longer each stage is than the last, at least 1; for ``stage_steps``.
    average : bool, default=True
        End a stage at the average of its points; else at the last.
    weight_decay : float, default=0.0
        Of the network.
    delta : float, default=1e-6
        Of AdaGrad, whose steps do not depend on the scale of the loss while it is well below the gradients: take it
        with many classes, each of which has its share :math:`V_i` of the loss only.

    Notes
    -----
    A step costs one pass over the parameters and their gradients; the reference point, the running average and, for
    AdaGrad, the sums of squares take as much memory each as the parameters.

    Examples
    --------
    >>> import torch
    >>> from experiments.deepauc import DeepAUCLoss, PPDOptimizer
    >>> X, y = torch.eye(3), torch.arange(3)
    >>> model, loss = torch.nn.Linear(3, 3), DeepAUCLoss(3)
    >>> optimizer = PPDOptimizer(model.parameters(), loss, lr=1.0, stage_steps=50)
    >>> for _ in range(200):
    ...     optimizer.zero_grad()
    ...     loss(model(X), y).backward()
    ...     optimizer.step()
    >>> optimizer.stage
    2
    >>> bool((model(X).argmax(1) == y).all())
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        loss: DeepAUCLoss,
        lr: float = 0.1,
        *,
        proximal: float = 500.0,
        method: str = "sgd",
        stage_steps: int | None = None,
        decay: float = 3.0,
        growth: float = 3.0,
        average: bool = True,
        weight_decay: float = 0.0,
        delta: float = 1e-6,
    ) -> None:
        if not isinstance(loss, DeepAUCLoss):
            advice = "pass the loss that the network is trained with"
            raise invalid("loss", "must be a DeepAUCLoss, whose a, b and dual are trained too", type(loss), advice)
        for name, factor in (("decay", decay), ("growth", growth)):
            check_real(name, factor, low=1, closed="left", advice="1 keeps every stage alike")
        defaults = {
            "lr": check_real("lr", lr, low=0),
            "proximal": check_real("proximal", proximal, low=0),
            "delta": check_real("delta", delta, low=0),
            "weight_decay": check_not_negative("weight_decay", weight_decay),
            "ascent": False,
            "stage": 0,
            "steps": 0,
            "stage_steps": None if stage_steps is None else check_whole("stage_steps", stage_steps, least=1),
        }
        self.method = check_choice("method", method, METHODS)
        self.decay, self.growth, self.average = float(decay), float(growth), bool(average)
        free = {"weight_decay": 0.0}
        own = [{"params": [loss.a, loss.b], **free}, {"params": [loss.dual], "ascent": True, **free}]
        super().__init__([*_groups(params, loss), *own], defaults)

    @property
    def stage(self) -> int:
        """Number of the stage, from 0."""
        return int(self.param_groups[0]["stage"])

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step down for the network, a and b, and up for the dual variables; ends the stage when it is due."""
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
        for group in self.param_groups:
            group["steps"] += 1
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group)
        first = self.param_groups[0]
        if first["stage_steps"] is not None and first["steps"] >= first["stage_steps"]:
            self.end_stage()
        return value

    def _move(self, p: Tensor, group: dict[str, Any]) -> None:
        state, g = self.state[p], p.grad
        assert g is not None  # the caller looked
        if group["weight_decay"]:
            g = g.add(p, alpha=group["weight_decay"])
        if "reference" not in state:
            state["reference"], state["sum"] = p.clone(), torch.zeros_like(p)
            state["count"] = torch.zeros((), device=p.device)  # there, so that a recorded step counts too
        metric: Tensor | float = 1.0
        if self.method == "adagrad":
            squares = state.setdefault("squares", torch.zeros_like(p)).addcmul_(g, g)
            metric = squares.sqrt().add_(group["delta"])
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
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    continue
                if self.average:
                    p.copy_(state["sum"] / state["count"])
                state["reference"].copy_(p)
                state["sum"].zero_()
                state["count"].zero_()
                if "squares" in state:
                    state["squares"].zero_()
            group["lr"] /= self.decay
            group["stage"] += 1
            group["steps"] = 0
            if group["stage_steps"] is not None:
                group["stage_steps"] = round(group["stage_steps"] * self.growth)


def _groups(params: Iterable[Any], loss: DeepAUCLoss) -> list[dict[str, Any]]:
    """Groups of the network's parameters, without those of the loss: all parameters of a module that holds both may
    be passed.
    """
    if isinstance(params, Tensor):
        raise invalid("params", "must be parameters or groups of them", "one tensor", "pass model.parameters()")
    given = list(params)
    groups = given if given and isinstance(given[0], dict) else [{"params": given}]
    mine = {id(p) for p in loss.parameters()}
    kept = [{**g, "params": [p for p in _listed(g["params"]) if id(p) not in mine]} for g in groups]
    kept = [g for g in kept if g["params"]]
    if not kept:
        advice = "pass model.parameters()"
        raise invalid("params", "must hold a parameter of the network", "none", advice)
    return kept


def _listed(params: Any) -> list[Any]:
    return [params] if isinstance(params, Tensor) else list(params)
