"""The bound of a ``torch.nn.Module``, from the norms of its layers and their distances from initial weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh_tridiagonal
from scipy.special import softmax

from mauc._typing import Floats
from mauc._validation import check_codes, check_whole, invalid
from mauc.risk import SurrogateRisk
from mauc.theory.bounds import Bound, cnn, dnn, surrogate_constants

if TYPE_CHECKING:
    from torch import nn

__all__ = ["NetworkNorms", "conv_spectral_norm", "network_bound", "network_norms"]


@dataclass(frozen=True)
class NetworkNorms:
    """Norms of the layers of a network, batch normalisation folded into the layer before it.

    With biases, a layer is :math:`(h, 1) \\mapsto (A h + b, 1)`, and the input is :math:`(x, 1)`.
    """

    frobenius: tuple[float, ...] | None
    """Frobenius norm of each layer; None if a layer is a convolution or an activation is not rectified."""
    spectral: tuple[float, ...]
    """Spectral norm of each layer as an operator."""
    initial_spectral: tuple[float, ...]
    """Spectral norms at the initial weights."""
    distances: tuple[float, ...]
    """Spectral norm of the difference of each layer from its initial weights."""
    n_parameters: int
    biased: bool

    @property
    def depth(self) -> int:
        return len(self.spectral)

    @property
    def distance(self) -> float:
        """β, the sum of :attr:`distances`."""
        return float(sum(self.distances))

    def radius(self, norm: float) -> float:
        """Return the largest length of an input of that norm, with the 1 that carries the biases."""
        return float(np.hypot(norm, 1.0)) if self.biased else norm


@dataclass(frozen=True)
class _Layer:
    weight: Floats
    bias: Floats | None
    convolution: Any = None
    """The convolution of torch; None for a matrix."""
    input_size: tuple[int, ...] = ()
    """Size of the images that it takes."""
    positions: int = 1
    """Number of output positions that share the bias."""

    def norm(self, weight: Floats) -> float:
        """Return the spectral norm of the layer with other weights."""
        if not weight.any():
            return 0.0
        if self.convolution is None:
            return float(np.linalg.norm(weight, ord=2))
        other = deepcopy(self.convolution)
        other.weight.data = other.weight.new_tensor(weight)
        return conv_spectral_norm(other, self.input_size)

    def length(self, bias: Floats | None) -> float:
        """Return the length of the vector that a bias adds to an output."""
        return 0.0 if bias is None else float(np.linalg.norm(bias) * np.sqrt(self.positions))

    def spectral(self, biased: bool) -> float:
        """Return the spectral norm; in a network with biases, at most that of ``[[A, b], [0, 1]]``."""
        norm = self.norm(self.weight)
        return max(1.0, norm) + self.length(self.bias) if biased else norm

    def distance(self, first: _Layer) -> float:
        bias = self.bias if self.bias is None or first.bias is None else self.bias - first.bias
        return self.norm(self.weight - first.weight) + self.length(bias)


def network_norms(network: nn.Module, X: Any, *, initial: nn.Module | Mapping[str, Any] | None = None) -> NetworkNorms:
    """Compute the norms of the layers of a network, in evaluation mode.

    Parameters
    ----------
    network : torch.nn.Module
        Nested ``nn.Sequential`` of linear and convolutional layers, batch normalisation right after one of them, and
        layers that neither stretch nor move 0: ReLU, LeakyReLU, Tanh, pooling, Flatten, Dropout.
    X : (N, ...) array or tensor
        Input; its first sample gives the sizes of the images.
    initial : Module or state_dict, optional
        Weights before the training. Default: zeros, so that the distance is the norm.

    Returns
    -------
    NetworkNorms
        One singular value decomposition per layer, or one :func:`conv_spectral_norm`.

    Examples
    --------
    >>> import torch
    >>> from experiments.theory import network_norms
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    >>> network_norms(layer, torch.zeros(1, 2)).frobenius
    (5.0,)
    """
    import torch
    from torch import nn

    if not isinstance(network, nn.Module):
        raise invalid("network", "must be a torch.nn.Module", type(network).__name__, "pass the network itself")
    sample = X[:1] if isinstance(X, torch.Tensor) else torch.as_tensor(np.asarray(X[:1]))
    layers = _layers(network, sample)
    if not layers:
        raise invalid("network", "must have a layer with weights", repr(network), "pass a network of such layers")
    if initial is None:
        begin = [replace(layer, weight=np.zeros_like(layer.weight), bias=None) for layer in layers]
    else:
        begin = _layers(_with_weights(network, initial), sample)
    biased = any(layer.bias is not None for layer in layers)
    squares = [float(sum(np.sum(w**2) for w in (each.weight, each.bias) if w is not None)) for each in layers]
    # The last layer need not pass the 1 on.
    frobenius = tuple(float(np.sqrt(s + (biased and k + 1 < len(squares)))) for k, s in enumerate(squares))
    # Peeling layers needs matrices, and activations that are positively homogeneous.
    peeled = all(layer.convolution is None for layer in layers)
    peeled = peeled and not any(isinstance(leaf, nn.Tanh) for leaf in _leaves(network))
    return NetworkNorms(
        frobenius=frobenius if peeled else None,
        spectral=tuple(layer.spectral(biased) for layer in layers),
        initial_spectral=tuple(first.spectral(biased) for first in begin),
        distances=tuple(layer.distance(first) for layer, first in zip(layers, begin, strict=True)),
        n_parameters=sum(w.size for layer in layers for w in (layer.weight, layer.bias) if w is not None),
        biased=biased,
    )


def _with_weights(network: nn.Module, initial: Any) -> nn.Module:
    before = deepcopy(network)
    try:
        before.load_state_dict(initial.state_dict() if hasattr(initial, "state_dict") else initial)
    except (RuntimeError, TypeError, AttributeError) as error:
        advice = "pass a copy of the module, or its state_dict, from before the training"
        came = f"other weights ({str(error).splitlines()[0]})"
        raise invalid("initial", "must hold the weights of the network", came, advice) from None
    return before


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    from torch import nn

    if isinstance(module, nn.Sequential):
        for child in module:
            yield from _leaves(child)
    else:
        yield module


def _layers(network: nn.Module, sample: Any) -> list[_Layer]:
    """Return the layers with weights; batch normalisation is folded into the layer before it."""
    import torch
    from torch import nn
    from torch.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval

    convolutions = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    leaves = list(_leaves(deepcopy(network).cpu().double().eval()))
    # Only convolutions need the sizes of what comes in and goes out.
    x: Any = sample.cpu().double() if any(isinstance(leaf, convolutions) for leaf in leaves) else None
    layers: list[_Layer] = []
    before: Any = None
    """The layer that a batch normalisation is folded into."""
    for place, leaf in enumerate(leaves):
        with torch.no_grad():
            out: Any = None if x is None else leaf(x)
        if isinstance(leaf, nn.Linear):
            layers.append(_Layer(*_parameters(leaf)))
            before = leaf
        elif isinstance(leaf, convolutions):
            layers.append(_Layer(*_parameters(leaf), leaf, tuple(x.shape[2:]), int(np.prod(out.shape[2:]))))
            before = leaf
        elif isinstance(leaf, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) and before is not None:
            if leaf.running_mean is None:
                advice = "track running statistics, or pass the norms as numbers"
                raise invalid("network", "must normalise by fixed statistics", repr(leaf), advice)
            fuse: Any = fuse_linear_bn_eval if isinstance(before, nn.Linear) else fuse_conv_bn_eval
            before = fuse(before, leaf)
            weight, bias = _parameters(before)
            layers[-1] = replace(layers[-1], weight=weight, bias=bias)
        elif isinstance(leaf, nn.Softmax) and place + 1 == len(leaves):
            continue  # the bounds apply it themselves
        elif not _neutral(leaf):
            requirement = "must be nn.Sequential of linear, convolutional and neutral layers"
            advice = "pass the norms to bounds.dnn or bounds.cnn as numbers"
            raise invalid("network", requirement, repr(leaf), advice)
        elif not isinstance(leaf, nn.Identity | nn.Dropout):
            before = None
        x = out
    return layers


def _parameters(leaf: Any) -> tuple[Floats, Floats | None]:
    return leaf.weight.detach().numpy(), None if leaf.bias is None else leaf.bias.detach().numpy()


def _neutral(leaf: nn.Module) -> bool:
    """Return True for a layer that stretches no difference and keeps 0."""
    from torch import nn

    if isinstance(leaf, nn.LeakyReLU):
        return abs(leaf.negative_slope) <= 1
    if isinstance(leaf, nn.MaxPool1d | nn.MaxPool2d | nn.MaxPool3d):
        # Windows that overlap count a pixel more than once.
        return bool(np.all(np.asarray(leaf.stride) >= np.asarray(leaf.kernel_size)))
    if isinstance(leaf, nn.AdaptiveAvgPool1d | nn.AdaptiveAvgPool2d | nn.AdaptiveAvgPool3d):
        return bool(np.all(np.asarray(leaf.output_size) == 1))
    dropout = nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d
    average = nn.AvgPool1d | nn.AvgPool2d | nn.AvgPool3d
    return isinstance(leaf, nn.ReLU | nn.Tanh | nn.Identity | nn.Flatten | dropout | average)


def conv_spectral_norm(layer: nn.Module, input_size: tuple[int, ...], *, steps: int = 300) -> float:
    r"""Return the largest singular value of a convolution as an operator from images to images, or slightly more.

    The function runs q steps of Lanczos on :math:`A^\top A`, from a random start. Any such iteration approaches the
    norm from below, but its largest Ritz value θ is rarely far below: for an input of n numbers (Kuczyński and
    Woźniakowski, 1992)

    .. math:: P\bigl(\theta < (1 - \varepsilon) \lVert A \rVert^2\bigr) \le 1.648 \sqrt n\,
        e^{-\sqrt\varepsilon (2 q - 1)} ,

    so the function returns :math:`\sqrt{\theta / (1 - \varepsilon)}` with ε such that the right side is 1e-9: an upper
    bound, about 0.1 % above the norm with 300 steps.

    Parameters
    ----------
    layer : torch.nn.Conv1d, Conv2d or Conv3d
        The bias is ignored.
    input_size : tuple of int
        Size of the images, without channels.
    steps : int, default=300
        Steps of Lanczos, at least 20: the excess falls with the square of their number.

    Returns
    -------
    float
        Time of two convolutions per step.

    Examples
    --------
    >>> import torch
    >>> from experiments.theory import conv_spectral_norm
    >>> layer = torch.nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular")
    >>> layer.weight.data = torch.tensor([[[1.0, 2.0, 1.0]]])
    >>> round(conv_spectral_norm(layer, (8,)), 2)
    4.0
    """
    import torch
    from torch import nn

    if not isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        advice = "pass torch.nn.Conv1d, Conv2d or Conv3d"
        raise invalid("layer", "must be a convolution", type(layer).__name__, advice)
    check_whole("steps", steps, least=20)
    convolve: Any = deepcopy(layer).cpu().double().requires_grad_(False)
    convolve.bias = None

    def back_and_forth(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            out = convolve(x)
            # The adjoint of a linear map is the gradient of half its squared length.
            (back,) = torch.autograd.grad(out, x, out.detach())
        return back

    shape = (1, convolve.in_channels, *input_size)
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x, before, beta = x / x.norm(), torch.zeros_like(x), 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(steps):
        new = back_and_forth(x) - beta * before
        diagonal.append(float((new * x).sum()))
        new = new - diagonal[-1] * x
        beta = float(new.norm())
        if beta <= 1e-14 * max(diagonal):
            break  # the Krylov space is used up
        beside.append(beta)
        before, x = x, new / beta
    # The vectors lose their orthogonality; that repeats the largest Ritz value and does not move it.
    ritz = float(eigvalsh_tridiagonal(diagonal, beside[: len(diagonal) - 1]).max())
    excess = np.log(1.648 * np.sqrt(x.numel()) / 1e-9) / (2 * steps - 1)
    return float(np.sqrt(max(ritz, 0.0) / (1.0 - excess**2)))


def network_bound(
    network: nn.Module,
    X: Any,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    initial: nn.Module | Mapping[str, Any] | None = None,
    surrogate: Any = "exponential",
    alpha: float | None = None,
) -> Bound:
    """Return the bound on the ovo risk of a network that returns logits, from the data that it was trained on.

    Networks get :func:`mauc.theory.bounds.cnn`, rectified networks without convolutions the smaller of it and of
    :func:`mauc.theory.bounds.dnn`. ``y`` are codes of the columns; ``initial`` is that of :func:`network_norms`.
    """
    norms = network_norms(network, X, initial=initial)
    logits = _logits(network, X)
    if len(logits) != np.size(y) or logits.ndim != 2:
        requirement = "must map the rows of X to logits of shape (N, C)"
        raise invalid("network", requirement, f"shape {logits.shape}", "pass a classifier, and X and y in full")
    codes = check_codes(y, *logits.shape)
    counts = np.bincount(codes, minlength=logits.shape[1])
    if not counts.all():
        came, advice = f"none of column {int(np.argmin(counts))}", "drop the columns of classes without samples"
        raise invalid("y", "must have samples of every class", came, advice)
    risk = SurrogateRisk(surrogate, alpha=alpha)
    constants = surrogate_constants(risk.surrogate)
    largest = float(np.linalg.norm(np.asarray(_numpy(X), dtype=np.float64).reshape(len(X), -1), axis=1).max())
    shared: dict[str, Any] = {
        "radius": norms.radius(largest),
        "lipschitz": constants.lipschitz,
        "bound": constants.bound,
        "delta": delta,
    }
    value = risk.value(codes, softmax(logits, axis=1))
    near: dict[str, Any] = {"spectral_norms": norms.initial_spectral, "distance": norms.distance}
    near["n_parameters"] = norms.n_parameters
    found = [cnn(value, counts, **near, **shared)]
    if norms.frobenius is not None:
        with np.errstate(over="ignore"):
            # If the product of many norms exceeds the largest float, the other bound is smaller and is used.
            gamma = min(float(np.prod(norms.frobenius)), 1e200)
        found.append(dnn(value, counts, gamma=gamma, depth=norms.depth, **shared))
    return min(found, key=lambda each: each.total)


def _numpy(X: Any) -> Any:
    return X.detach().cpu().numpy() if hasattr(X, "detach") else X


def _logits(network: Any, X: Any) -> Floats:
    import torch

    network = deepcopy(network).eval()
    rows = torch.as_tensor(_numpy(X)).to(next(network.parameters()))
    with torch.no_grad():
        parts = [network(rows[k : k + 1024]) for k in range(0, len(rows), 1024)]
    return torch.cat(parts).double().cpu().numpy()
