"""Norms of the layers of a ``torch.nn.Module``, and how far they are from their initial weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh_tridiagonal

from mauc._typing import Floats
from mauc._validation import check_choice, check_whole, invalid

if TYPE_CHECKING:
    from torch import nn

__all__ = ["NetworkNorms", "conv_spectral_norm", "network_norms"]

Sizes = tuple[int, ...]


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
    convolution: dict[str, Any] | None = None
    """Settings of :func:`conv_spectral_norm`; None for a matrix."""
    positions: int = 1
    """Number of places of the output that share the bias."""

    def norm(self, weight: Floats) -> float:
        """Return the spectral norm of the layer with other weights."""
        if not weight.any():
            return 0.0
        if self.convolution is None:
            return float(np.linalg.norm(weight, ord=2))
        return conv_spectral_norm(weight, **self.convolution)

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
    >>> from mauc.theory.bounds import network_norms
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
            layers.append(_convolution(leaf, tuple(x.shape[2:]), int(np.prod(out.shape[2:]))))
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


def _convolution(leaf: Any, size: Sizes, positions: int) -> _Layer:
    padding = leaf.padding
    if padding == "same":
        spans = [d * (k - 1) for d, k in zip(leaf.dilation, leaf.kernel_size, strict=True)]
        if any(span % 2 for span in spans):
            advice = "use an odd kernel, or pass the norms to bounds.cnn as numbers"
            raise invalid("network", "must pad both sides alike", repr(leaf), advice)
        padding = tuple(span // 2 for span in spans)
    settings = {name: getattr(leaf, name) for name in ("stride", "padding_mode", "dilation", "groups")}
    settings |= {"input_size": size, "padding": 0 if padding == "valid" else padding}
    return _Layer(*_parameters(leaf), settings, positions)


def conv_spectral_norm(
    kernel: ArrayLike,
    input_size: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    padding_mode: str = "zeros",
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    steps: int = 300,
) -> float:
    r"""Return the largest singular value of a convolution as an operator from images to images, or slightly more.

    With circular padding to the size of the input and stride 1 the Fourier transform makes it a matrix of channels for
    each frequency, and the result is exact (Sedghi, Gupta and Long, 2019). Otherwise it runs q steps of Lanczos on
    :math:`A^\top A` in torch, from a random start. Any such iteration approaches the norm from below. But its
    largest Ritz value θ is rarely far below: for an input of n numbers (Kuczyński and Woźniakowski, 1992)

    .. math:: P\bigl(\theta < (1 - \varepsilon) \lVert A \rVert^2\bigr) \le 1.648 \sqrt n\,
        e^{-\sqrt\varepsilon (2 q - 1)} ,

    so the function returns :math:`\sqrt{\theta / (1 - \varepsilon)}` with ε such that the right side is 1e-9: an upper
    bound, about 0.1 % above the norm with 300 steps.

    Parameters
    ----------
    kernel : (channels out, channels in / groups, \*size) array
        Weight of a convolution in one to three dimensions.
    input_size : int or tuple of int
        Size of the images.
    stride, padding, padding_mode, dilation, groups
        As in ``torch.nn.Conv2d``; ``padding_mode`` is ``"zeros"`` or ``"circular"``.
    steps : int, default=300
        Steps of Lanczos, at least 20: the excess falls with the square of their number.

    Returns
    -------
    float
        Time O(n c² (c + log n)) by Fourier, for n pixels and c channels; two convolutions a step else.

    Examples
    --------
    >>> from mauc.theory.bounds import conv_spectral_norm
    >>> round(conv_spectral_norm([[[1.0, 2.0, 1.0]]], 8, padding=1, padding_mode="circular"), 6)
    4.0
    """
    k = np.asarray(kernel, dtype=np.float64)
    dim = k.ndim - 2
    if not 1 <= dim <= 3 or k.size == 0 or not np.isfinite(k).all():
        requirement = "must be finite, of shape (channels out, channels in, *size) with one to three sizes"
        raise invalid("kernel", requirement, f"shape {k.shape}", "pass the weight of a convolution")
    check_choice("padding_mode", padding_mode, ("zeros", "circular"))
    size = _sizes("input_size", input_size, dim, least=1)
    strides, pads = _sizes("stride", stride, dim, least=1), _sizes("padding", padding, dim, least=0)
    dilations = _sizes("dilation", dilation, dim, least=1)
    spans = tuple(d * (s - 1) for d, s in zip(dilations, k.shape[2:], strict=True))
    if any(n + 2 * p <= span for n, p, span in zip(size, pads, spans, strict=True)):
        came = f"{size} with padding {pads}"
        requirement = f"must hold the kernel, which spans {tuple(s + 1 for s in spans)}"
        raise invalid("input_size", requirement, came, "enlarge it")
    same = all(2 * p == span for p, span in zip(pads, spans, strict=True))
    if padding_mode == "circular" and same and set(strides) == {1} and groups == 1:
        return _by_fourier(k, size, dilations)
    return _by_lanczos(k, size, strides, pads, dilations, padding_mode, groups, check_whole("steps", steps, least=20))


def _sizes(parameter: str, value: Any, dim: int, *, least: int) -> Sizes:
    values = tuple(value) if np.ndim(value) else (value,) * dim
    if len(values) != dim:
        requirement = f"must be a whole number or {dim} of them"
        raise invalid(parameter, requirement, repr(value), "pass one for each dimension of the images")
    return tuple(check_whole(parameter, v, least=least) for v in values)


def _by_fourier(kernel: Floats, size: Sizes, dilations: Sizes) -> float:
    # Circular padding: an entry that reaches beyond the image is added at its place modulo the size.
    wrapped = np.zeros((*kernel.shape[:2], *size))
    for place in np.ndindex(*kernel.shape[2:]):
        at = tuple((d * x) % n for d, x, n in zip(dilations, place, size, strict=True))
        wrapped[(slice(None), slice(None), *at)] += kernel[(slice(None), slice(None), *place)]
    channels = np.moveaxis(np.fft.fftn(wrapped, axes=tuple(range(2, kernel.ndim))), (0, 1), (-2, -1))
    return float(np.linalg.norm(channels, ord=2, axis=(-2, -1)).max())


def _by_lanczos(
    kernel: Floats,
    size: Sizes,
    strides: Sizes,
    pads: Sizes,
    dilations: Sizes,
    padding_mode: str,
    groups: int,
    steps: int,
) -> float:
    import torch
    from torch.nn import functional

    convolve = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[kernel.ndim - 2]
    weight = torch.as_tensor(kernel)
    around = [p for pad in reversed(pads) for p in (pad, pad)]
    mode = "constant" if padding_mode == "zeros" else "circular"

    def back_and_forth(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            out = convolve(functional.pad(x, around, mode=mode), weight, None, strides, 0, dilations, groups)
            # The adjoint of a linear map is the gradient of half its squared length.
            (back,) = torch.autograd.grad(out, x, out.detach())
        return back

    shape = (1, kernel.shape[1] * groups, *size)
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
