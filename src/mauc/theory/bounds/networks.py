"""What the bounds need of a ``torch.nn.Module``: norms of its layers, and how far they are from where they began."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mauc._typing import Floats
from mauc._validation import invalid
from mauc.theory.bounds.convolution import conv_spectral_norm

if TYPE_CHECKING:
    from torch import nn

__all__ = ["NetworkNorms", "network_norms"]


@dataclass(frozen=True)
class NetworkNorms:
    """Norms of the layers of a network, batch normalisation folded into the layer before it.

    With biases, a layer is :math:`(h, 1) \\mapsto (A h + b, 1)`, and the input is :math:`(x, 1)`.
    """

    frobenius: tuple[float, ...] | None
    """Of each layer's matrix; None where a layer is a convolution or an activation is not rectified."""
    spectral: tuple[float, ...]
    """Of each layer as an operator, at its present weights."""
    initial_spectral: tuple[float, ...]
    """The same at the initial weights."""
    distances: tuple[float, ...]
    """Spectral norm of each layer less its initial one."""
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
        """Largest length of an input of that norm, with the 1 that carries the biases."""
        return float(np.hypot(norm, 1.0)) if self.biased else norm


@dataclass(frozen=True)
class _Layer:
    weight: Floats
    bias: Floats | None
    convolution: dict[str, Any] | None
    """Settings of :func:`conv_spectral_norm`; None for a matrix."""
    positions: int
    """Places of the output that share the bias."""


def network_norms(
    network: "nn.Module", X: Any, *, initial: "nn.Module | Mapping[str, Any] | None" = None
) -> NetworkNorms:
    """Norms of the layers of a network.

    Parameters
    ----------
    network : torch.nn.Module
        Nested ``nn.Sequential`` of linear and convolutional layers, batch normalisation right after one of them, and
        what neither stretches nor moves 0: ReLU, LeakyReLU, Tanh, pooling, Flatten, Dropout. It is judged as in
        evaluation mode.
    X : (N, ...) array or tensor
        Input; one sample of it tells the sizes of the images.
    initial : Module or state_dict, optional
        Weights before the training. Default: zeros, so that the distance is the norm itself.

    Returns
    -------
    NetworkNorms
        Costs one singular value decomposition a layer, or what :func:`conv_spectral_norm` costs.

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
    sample = torch.as_tensor(np.asarray(X[:1]) if not isinstance(X, torch.Tensor) else X[:1])
    leaves = list(_leaves(network))
    layers = _layers(network, leaves, sample)
    if not layers:
        raise invalid("network", "must have a layer with weights", repr(network), "pass a network of such layers")
    begin = [_zeros(layer) for layer in layers] if initial is None else _initial_layers(network, initial, sample)
    biased = any(layer.bias is not None for layer in layers)
    spectral, initial_spectral, distances, parameters = [], [], [], 0
    for layer, first in zip(layers, begin, strict=True):
        spectral.append(_augmented(layer, biased))
        initial_spectral.append(_augmented(first, biased))
        distances.append(_norm(layer, layer.weight - first.weight) + _length(layer, _minus(layer.bias, first.bias)))
        parameters += layer.weight.size + (0 if layer.bias is None else layer.bias.size)
    return NetworkNorms(
        frobenius=_frobenius(layers, leaves, biased),
        spectral=tuple(spectral),
        initial_spectral=tuple(initial_spectral),
        distances=tuple(distances),
        n_parameters=parameters,
        biased=biased,
    )


def _zeros(layer: _Layer) -> _Layer:
    return replace(layer, weight=np.zeros_like(layer.weight), bias=None)


def _norm(layer: _Layer, weight: Floats) -> float:
    """Spectral norm of weights in the place of the layer's."""
    if not weight.any():
        return 0.0
    if layer.convolution is None:
        return float(np.linalg.norm(weight, ord=2))
    return conv_spectral_norm(weight, **layer.convolution)


def _length(layer: _Layer, bias: Floats | None) -> float:
    """Of what the bias adds to an output."""
    return 0.0 if bias is None else float(np.linalg.norm(bias) * np.sqrt(layer.positions))


def _minus(bias: Floats | None, other: Floats | None) -> Floats | None:
    return bias if bias is None or other is None else bias - other


def _augmented(layer: _Layer, biased: bool) -> float:
    """Spectral norm; in a network with biases, at most that of ``[[A, b], [0, 1]]``."""
    norm = _norm(layer, layer.weight)
    return max(1.0, norm) + _length(layer, layer.bias) if biased else norm


def _frobenius(layers: list[_Layer], leaves: list["nn.Module"], biased: bool) -> tuple[float, ...] | None:
    from torch import nn

    if any(layer.convolution is not None for layer in layers):
        return None
    # Peeling layers needs activations that are positively homogeneous.
    if any(isinstance(leaf, nn.Tanh) for leaf in leaves):
        return None
    squares = [
        float(np.sum(layer.weight**2)) + (0.0 if layer.bias is None else float(np.sum(layer.bias**2)))
        for layer in layers
    ]
    # The last layer need not pass the 1 on.
    return tuple(
        float(np.sqrt(square + (1.0 if biased and k + 1 < len(squares) else 0.0))) for k, square in enumerate(squares)
    )


def _initial_layers(network: "nn.Module", initial: Any, sample: Any) -> list[_Layer]:
    from torch import nn

    state = initial.state_dict() if isinstance(initial, nn.Module) else initial
    before = deepcopy(network)
    try:
        before.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        advice = "pass a copy of the module, or its state_dict, from before the training"
        came = f"other weights ({str(error).splitlines()[0]})"
        raise invalid("initial", "must hold the weights of the network", came, advice) from None
    return _layers(before, list(_leaves(before)), sample)


def _leaves(module: "nn.Module") -> Iterator["nn.Module"]:
    from torch import nn

    if isinstance(module, nn.Sequential):
        for child in module:
            yield from _leaves(child)
    else:
        yield module


def _layers(network: "nn.Module", leaves: list["nn.Module"], sample: Any) -> list[_Layer]:
    from torch import nn

    sizes = _sizes(network, leaves, sample)
    layers: list[_Layer] = []
    foldable = False
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, nn.Linear):
            layers.append(_Layer(_numpy(leaf.weight), _optional(leaf.bias), None, 1))
            foldable = True
        elif isinstance(leaf, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            layers.append(_convolution(leaf, *sizes[place]))
            foldable = True
        elif isinstance(leaf, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) and foldable:
            layers[-1] = _folded(layers[-1], leaf)
        elif isinstance(leaf, nn.Softmax) and place + 1 == len(leaves):
            continue  # the bounds apply it themselves
        elif not _neutral(leaf):
            requirement = "must be nn.Sequential of linear, convolutional and neutral layers"
            advice = "pass the norms to bounds.dnn or bounds.cnn as numbers"
            raise invalid("network", requirement, repr(leaf), advice)
        else:
            foldable = foldable and isinstance(leaf, nn.Identity | nn.Dropout)
    return layers


def _neutral(leaf: "nn.Module") -> bool:
    """It stretches no difference and keeps 0."""
    from torch import nn

    if isinstance(leaf, nn.LeakyReLU):
        return abs(leaf.negative_slope) <= 1
    if isinstance(leaf, nn.MaxPool1d | nn.MaxPool2d | nn.MaxPool3d):
        # Windows that overlap count a pixel more than once.
        return bool(np.all(np.asarray(leaf.stride) >= np.asarray(leaf.kernel_size)))
    average = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
    adaptive = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
    if isinstance(leaf, adaptive):
        return bool(np.all(np.asarray(leaf.output_size) == 1))
    quiet = (nn.ReLU, nn.Tanh, nn.Identity, nn.Flatten, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
    return isinstance(leaf, (*quiet, *average))


def _sizes(network: "nn.Module", leaves: list["nn.Module"], sample: Any) -> dict[int, tuple[tuple[int, ...], int]]:
    """Size of the images that come into each convolution, and the number of places that go out."""
    import torch
    from torch import nn

    found: dict[int, tuple[tuple[int, ...], int]] = {}
    convolutions = [k for k, leaf in enumerate(leaves) if isinstance(leaf, nn.Conv1d | nn.Conv2d | nn.Conv3d)]
    if not convolutions:
        return found
    x = sample.to(next(network.parameters()))
    training = {leaf: leaf.training for leaf in leaves}
    try:
        with torch.no_grad():
            for k, leaf in enumerate(leaves):
                out = leaf.eval()(x)
                if k in convolutions:
                    found[k] = (tuple(x.shape[2:]), int(np.prod(out.shape[2:])))
                x = out
    finally:
        for leaf, mode in training.items():
            leaf.train(mode)
    return found


def _numpy(tensor: Any) -> Floats:
    return tensor.detach().cpu().double().numpy()


def _optional(tensor: Any) -> Floats | None:
    return None if tensor is None else _numpy(tensor)


def _convolution(leaf: Any, size: tuple[int, ...], positions: int) -> _Layer:
    padding = leaf.padding
    if padding == "same":
        spans = [d * (k - 1) for d, k in zip(leaf.dilation, leaf.kernel_size, strict=True)]
        if any(span % 2 for span in spans):
            advice = "use an odd kernel, or pass the norms to bounds.cnn as numbers"
            raise invalid("network", "must pad both sides alike", repr(leaf), advice)
        padding = tuple(span // 2 for span in spans)
    settings = {
        "input_size": size,
        "stride": leaf.stride,
        "padding": 0 if padding == "valid" else padding,
        "padding_mode": leaf.padding_mode,
        "dilation": leaf.dilation,
        "groups": leaf.groups,
    }
    return _Layer(_numpy(leaf.weight), _optional(leaf.bias), settings, positions)


def _folded(layer: _Layer, norm: Any) -> _Layer:
    """The layer and the batch normalisation after it, which in evaluation is ``h ↦ a ⊙ (h − mean) + b``."""
    if norm.running_mean is None:
        advice = "track running statistics, or pass the norms as numbers"
        raise invalid("network", "must normalise by fixed statistics", repr(norm), advice)
    scale = 1.0 / np.sqrt(_numpy(norm.running_var) + norm.eps)
    if norm.affine:
        scale = scale * _numpy(norm.weight)
    shift = (0.0 if layer.bias is None else layer.bias) - _numpy(norm.running_mean)
    bias = scale * shift + (_numpy(norm.bias) if norm.affine else 0.0)
    weight = layer.weight * scale.reshape(-1, *[1] * (layer.weight.ndim - 1))
    return _Layer(weight, bias, layer.convolution, layer.positions)
