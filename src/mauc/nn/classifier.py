"""A multilayer perceptron trained by multiclass AUC, as a scikit-learn classifier."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from mauc._estimators import LogitClassifier, encode_classes
from mauc._typing import Floats
from mauc._validation import (
    check_choice,
    check_not_negative,
    check_pairs,
    check_real,
    check_sample_weight,
    check_whole,
    invalid,
)
from mauc.activations import Activation
from mauc.nn._training import Rows, dense, device_for, hold_out, read_checkpoint, rows_at_a_time, train
from mauc.nn.modules import MAUCLoss
from mauc.nn.samplers import ClassCoverageBatchSampler
from mauc.surrogates import Surrogate

__all__ = ["MAUCMLPClassifier"]

Optimizer = Literal["adam", "sgd"]
Accelerator = Literal["auto", "cpu", "gpu", "cuda", "mps"]


class MAUCMLPClassifier(LogitClassifier, BaseEstimator):  # type: ignore[misc]
    r"""Classify with a multilayer perceptron trained by :class:`mauc.nn.MAUCLoss`.

    Hidden layers are linear, batch-normalised and rectified, as in the paper. Every minibatch holds every class
    (:class:`mauc.nn.ClassCoverageBatchSampler`).

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(128, 64)
        Empty for a linear model.
    loss : Module, optional
        Another loss, called as ``loss(logits, classes)``, such as :class:`torch.nn.CrossEntropyLoss`.
    surrogate : str or object, default="exponential"
        Pair loss; :class:`mauc.nn.MAUCLoss` lists them.
    alpha : float, optional
        Margin or rate of the surrogate. Default: that of :class:`mauc.nn.MAUCLoss`.
    log_loss : float >= 0, default=0.5
        Weight of the adjusted cross-entropy. It is adjusted to the class shares of the minibatches, in which rare
        classes are more frequent than in the data. 0 is the pair loss alone.
    activation : {"softmax", "sigmoid", "identity", "log_odds"}, default="softmax"
        How logits become the scores that the pair loss ranks.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs in the loss, the validation score and :meth:`score`.
    batch_norm : bool, default=True
        Normalise the hidden layers by minibatch.
    optimizer : {"adam", "sgd"}, default="adam"
    learning_rate : float, default=1e-3
    weight_decay : float, default=1e-6
    momentum : float, default=0.0
        Momentum of SGD.
    lr_decay : float, default=0.99
        Factor on the learning rate every ``lr_decay_every`` epochs.
    lr_decay_every : int, default=5
    batch_size : int, default=1000
        Choose it well above the number of classes times ``min_per_class``; see the sampler.
    min_per_class : int, default=1
        Samples of every class in each minibatch.
    max_epochs : int, default=50
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of the samples, stop after ``patience`` epochs in which their multiclass
        AUC did not grow by ``tol``, and keep the best epoch. The hold-out is stratified: a class of fewer than four
        samples stays in training, and any other class has at least one sample in the hold-out.
    validation_fraction : float, default=0.1
    patience : int, default=10
    tol : float, default=0.0
    accelerator : {"auto", "cpu", "gpu", "cuda", "mps"}, default="auto"
    checkpoint_dir : str or path, optional
        Folder for ``last.ckpt``, which is written after each epoch. Default: nothing is written.
    resume : bool, default=False
        Continue from ``last.ckpt`` if it exists; the result is that of a run without interruption. Data and parameters
        must be the same, except ``max_epochs``.
    random_state : int, RandomState or None, default=None
        Fixes the initial weights, the minibatches and the hold-out.
    verbose : int, default=0
        1: print a line after each epoch, to the standard error stream.

    Attributes
    ----------
    classes_ : (C,) array
    model_ : Module
        The trained network, on the CPU; it maps rows to logits.
    n_iter_ : int
        Epochs.
    loss_curve_ : list of float
        Mean loss of the minibatches in each epoch.
    validation_scores_ : list of float
        Multiclass AUC of the hold-out after each epoch; empty without one.
    best_epoch_ : int or None
        The epoch, counted from 1, whose network is ``model_``; None without hold-out.
    best_validation_score_ : float or None
        The score of that epoch.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Computes in float32. Scale the features. Samples of weight 0 are dropped. ``loss`` takes sample weights as the third
    argument of ``forward``, or has a ``reduction`` and gets the weighted mean of its samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mauc.nn import MAUCMLPClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> mlp = MAUCMLPClassifier((16,), max_epochs=60, batch_size=60, random_state=0)
    >>> model = make_pipeline(StandardScaler(), mlp).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (128, 64),
        *,
        loss: nn.Module | None = None,
        surrogate: Any = "exponential",
        alpha: float | None = None,
        log_loss: float = 0.5,
        activation: Activation = "softmax",
        pairs: Literal["ovo", "ova", "ovr"] | ArrayLike = "ovo",
        batch_norm: bool = True,
        optimizer: Optimizer = "adam",
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-6,
        momentum: float = 0.0,
        lr_decay: float = 0.99,
        lr_decay_every: int = 5,
        batch_size: int = 1000,
        min_per_class: int = 1,
        max_epochs: int = 50,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        tol: float = 0.0,
        accelerator: Accelerator = "auto",
        checkpoint_dir: Any = None,
        resume: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.loss = loss
        self.surrogate = surrogate
        self.alpha = alpha
        self.log_loss = log_loss
        self.activation = activation
        self.pairs = pairs
        self.batch_norm = batch_norm
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.lr_decay = lr_decay
        self.lr_decay_every = lr_decay_every
        self.batch_size = batch_size
        self.min_per_class = min_per_class
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.tol = tol
        self.accelerator = accelerator
        self.checkpoint_dir = checkpoint_dir
        self.resume = resume
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on ``(N, d)`` samples, dense or sparse, and their classes.

        Parameters
        ----------
        X : (N, d) array or sparse matrix
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
            Without ``loss`` they weigh samples within their class.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32)
        classes, codes = encode_classes(y)
        check_pairs(self.pairs, len(classes), classes)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        saved = read_checkpoint(self.checkpoint_dir) if self.resume and self.random_state is None else None
        seed = saved["run"]["seed"] if saved else int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = np.arange(len(codes)) if weight is None else np.flatnonzero(weight)
        validation = None
        if self.early_stopping:
            rows, held_out = hold_out(codes, rows, self.validation_fraction, np.random.default_rng(seed))
            validation = Rows(X, codes, weight, held_out)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            hidden = np.atleast_1d(self.hidden_layer_sizes).tolist()
            network = mlp(X.shape[1], hidden, len(classes), batch_norm=bool(self.batch_norm))
        part = Rows(X, codes, weight, rows)
        losses, scores = train(network, self._loss(part), part, validation, self, seed)
        self.classes_ = classes
        self.model_ = network
        self.n_iter_ = len(losses)
        self.loss_curve_ = losses
        self.validation_scores_ = scores
        self.best_epoch_ = int(np.argmax(scores)) + 1 if scores else None
        self.best_validation_score_ = max(scores) if scores else None
        return self

    def _check_parameters(self) -> None:
        for name, least in WHOLE.items():
            check_whole(name, getattr(self, name), least=least)
        for name, (low, high) in REAL.items():
            check_real(name, getattr(self, name), low=low, high=high)
        for name in ("weight_decay", "momentum", "tol"):
            check_not_negative(name, getattr(self, name))
        check_real("lr_decay", self.lr_decay, low=0, high=1, closed="right", advice="1 keeps the rate")
        check_choice("optimizer", self.optimizer, get_args(Optimizer))
        check_choice("accelerator", self.accelerator, get_args(Accelerator))
        for size in np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=object)):
            check_whole("each of hidden_layer_sizes", size, least=1, advice="pass e.g. (128, 64)")
        if self.resume and self.checkpoint_dir is None:
            advice = "pass the checkpoint_dir of the run to resume"
            raise invalid("checkpoint_dir", "must be a folder where resume=True", None, advice)

    def _loss(self, part: Rows) -> nn.Module:
        if self.loss is None:
            return self._mauc_loss(self._batch_shares(part))
        if not isinstance(self.loss, nn.Module):
            advice = "pass a module, such as torch.nn.CrossEntropyLoss()"
            raise invalid("loss", "must be a torch.nn.Module", repr(self.loss), advice)
        return copy.deepcopy(self.loss)

    def _mauc_loss(self, class_counts: Floats) -> MAUCLoss:
        return MAUCLoss(
            class_counts if self.log_loss else None,
            surrogate=self.surrogate,
            alpha=self.alpha,
            log_loss=self.log_loss,
            activation=self.activation,
            pairs=self.pairs,
        )

    def _surrogate(self) -> Surrogate:
        """Return the pair loss of a fitted model."""
        return self._mauc_loss(np.ones(len(self.classes_))).surrogate

    def _batch_shares(self, part: Rows) -> Floats:
        """Return the ``(C,)`` summed weight of each class in the minibatches of an epoch."""
        codes = part.codes[part.rows]
        sampler = ClassCoverageBatchSampler(codes, self.batch_size, min_per_class=self.min_per_class)
        if part.weight is None:
            return sampler.class_visits
        weight = part.weight[part.rows]
        # Of mean 1: the loss refuses class sizes below 1.
        return sampler.class_visits * np.bincount(codes, weight / weight.mean()) / np.bincount(codes)

    def _logits(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float32)
        step, device = rows_at_a_time(X.shape[1]), device_for("auto" if self.accelerator != "cpu" else "cpu")
        with torch.inference_mode():
            model = self.model_ if device.type == "cpu" else copy.deepcopy(self.model_).to(device)
            parts = [model(dense(X[k : k + step]).to(device)).cpu() for k in range(0, X.shape[0], step)]
            return torch.cat(parts).numpy()


WHOLE = {"lr_decay_every": 1, "batch_size": 2, "min_per_class": 1, "max_epochs": 1, "patience": 1}
REAL = {"learning_rate": (0.0, np.inf), "validation_fraction": (0.0, 1.0)}


def mlp(n_features: int, hidden: Sequence[int], n_classes: int, *, batch_norm: bool = True) -> nn.Sequential:
    """Return linear layers with batch normalisation and rectifiers between them."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(n_features, int(width)), *([nn.BatchNorm1d(int(width))] if batch_norm else []), nn.ReLU()]
        n_features = int(width)
    return nn.Sequential(*layers, nn.Linear(n_features, n_classes))
