"""The torch loss and metric against the definition, in both precisions, with weights and ignored samples."""

import warnings

import numpy as np
import torch
from cases import CASES
from pair_loss import PairLoss, pair_loss
from scipy.special import expit, softmax

from fuzz import definitions
from fuzz.draw import problem
from mauc.nn import MAUC, LogitAdjustedLoss, MAUCLoss

IGNORED = -100
CHOICES = [case for case in CASES if not case.label]


def run(rng: np.random.Generator) -> None:
    kind = rng.random()
    if kind < 0.2:
        _metric(rng)
    elif kind < 0.35:
        _nothing_counts(rng)
    else:
        _loss(rng)


def _loss(rng: np.random.Generator) -> None:
    case = CHOICES[int(rng.integers(len(CHOICES)))]
    dtype = torch.float64 if rng.random() < 0.5 else torch.float32
    activation = str(rng.choice(["softmax", "sigmoid", "identity"]))
    drawn = problem(rng, ("ties", "normal", "outlier" if activation == "identity" else "integers"), 12, 4)
    y, logits, weight, pairs, _ = drawn
    if weight is not None and not 1e-6 < weight[weight > 0].min() <= weight.max() < 1e6:
        weight = np.clip(weight, 0.1, 10.0)  # float32 has 38 decades in all
    surrogate, options = case.surrogate, case.options
    given = torch.tensor(logits, dtype=dtype, requires_grad=True)
    exact = given.detach().double().numpy()
    scores = {"softmax": lambda z: softmax(z, axis=1), "sigmoid": expit, "identity": lambda z: z}[activation](exact)
    built = case.build()
    if not isinstance(pairs, str) and pairs.max() > 1e30:
        pairs = pairs / pairs.max()
    with np.errstate(over="ignore", invalid="ignore"):
        value, slope, magnitude = definitions.risk(y, scores, weight, pairs, built.loss, built.derivative)
    target, padded = torch.tensor(y), given
    extra = {} if weight is None else {"weight": torch.tensor(weight, dtype=dtype)}
    if rng.random() < 0.3:
        noise = rng.normal(size=(2, logits.shape[1])) * rng.choice([1.0, np.nan, np.inf])
        padded, target = (
            torch.cat([given, torch.tensor(noise, dtype=dtype)]),
            torch.cat([target, torch.tensor([IGNORED, IGNORED])]),
        )
        if extra:
            extra["weight"] = torch.cat([extra["weight"], torch.ones(2, dtype=dtype)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*taking all pairs in blocks", category=UserWarning)
        loss = pair_loss(
            padded, target, surrogate=surrogate, **options, activation=activation, pairs=_tensor(pairs), **extra
        )
        loss.backward()
    what = f"{case}, {activation}, {dtype}, {drawn.kind}"
    if not max(abs(value), magnitude.max()) < 0.1 * torch.finfo(dtype).max:
        assert not loss.isnan(), f"{what}: loss is NaN, by definition {value!r}"
        return
    expected = _pull_back(slope, scores, activation)
    size = float(abs(value)) + float(magnitude.max()) + (0.0 if case.exact else 1.0)
    precision = float(torch.finfo(dtype).eps)
    # A score is rounded before it is compared, so the room grows with the scores and with the steepness of the loss.
    steep = 1.0 + float(abs(exact).max())
    room = (2e3 * precision * steep + (2e-6 if not case.exact else 0.0)) * size
    assert abs(loss.item() - float(value)) <= room, f"{what}: loss {loss.item()!r}, by definition {float(value)!r}"
    off = float(np.abs(given.grad.double().numpy() - expected).max())
    if not _at_a_kink(case, scores, y, precision * steep):
        assert off <= room, f"{what}: gradient off by {off:.2e}, allowed {room:.2e}"


def _nothing_counts(rng: np.random.Generator) -> None:
    """All rows ignored, with any logits, or all weights 0: every loss is 0, and so is its gradient."""
    classes, n = int(rng.integers(2, 6)), int(rng.integers(1, 8))
    counts = rng.integers(1, 100, classes).tolist()
    case = CHOICES[int(rng.integers(len(CHOICES)))]
    log_loss = float(rng.choice([0.0, 1.0]))
    ranked = (
        MAUCLoss(counts)
        if rng.random() < 0.3
        else PairLoss(case.surrogate, **case.options, log_loss=log_loss, class_counts=counts if log_loss else None)
    )
    loss = ranked if rng.random() < 0.5 else LogitAdjustedLoss(counts)
    logits = torch.tensor(rng.normal(size=(n, classes)), dtype=torch.float64)
    if loss is ranked and rng.random() < 0.5:
        given = torch.tensor(rng.integers(0, classes, n)), torch.zeros(n)
    else:
        given = (torch.full((n,), IGNORED),)
        logits *= rng.choice([1.0, np.nan, np.inf])
    logits.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a batch of one class, and of surrogates without a polynomial
        value = loss(logits, *given)
    value.backward()
    assert value.item() == 0.0, f"{loss}: {value.item()!r} where no sample counts"
    assert not logits.grad.any(), f"{loss}: a gradient where no sample counts"


def _tensor(pairs):
    return pairs if isinstance(pairs, str) else torch.tensor(pairs)


def _pull_back(slope, scores, activation):
    if activation == "softmax":
        return (scores * (slope - (scores * slope).sum(axis=1, keepdims=True))).astype(float)
    return (slope * scores * (1 - scores) if activation == "sigmoid" else slope).astype(float)


def _at_a_kink(case, scores, y, near):
    """Some difference is so near a kink that rounding decides on which side it lies."""
    differences = (scores[np.arange(len(y)), y][:, None] - scores[:, y].T).ravel()
    return any(np.abs(differences - kink).min() <= 64 * near for kink in case.kinks)


def _metric(rng: np.random.Generator) -> None:
    y, scores, weight, pairs, _ = problem(rng, ("ties", "normal", "softmax", "float32", "outlier"))
    metric = MAUC(scores.shape[1], pairs=pairs, softmax=False, absent="ignore")
    if weight is not None:
        weight = np.clip(weight, 1e-30, 1e30) * rng.choice([1e-200, 1e-50, 1.0, 1e50])
    cut = int(rng.integers(0, len(y) + 1))
    for rows in (slice(0, cut), slice(cut, None)):
        if len(y[rows]):
            part = None if weight is None else torch.tensor(weight[rows])
            metric.update(torch.tensor(scores[rows]), torch.tensor(y[rows]), part)
    found, true = metric.compute().item(), float(definitions.mauc(y, scores, weight, pairs))
    assert abs(found - true) <= 1e-6, f"MAUC() {found!r}, by definition {true!r}"
