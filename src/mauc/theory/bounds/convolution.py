"""Spectral norm of a convolution as a linear operator on images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice, check_real, check_whole, invalid

__all__ = ["conv_spectral_norm"]

Sizes = tuple[int, ...]


def conv_spectral_norm(
    kernel: ArrayLike,
    input_size: int | tuple[int, ...],
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    padding_mode: str = "zeros",
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    tol: float = 1e-7,
    max_iter: int = 2000,
) -> float:
    r"""Largest singular value of a convolution as an operator from images to images.

    With circular padding to the size of the input and stride 1 the Fourier transform makes it a matrix of channels for
    each frequency (Sedghi, Gupta and Long, 2019): exact. Otherwise by power iteration, in torch, which approaches the
    norm from below until it grows by less than ``tol``, relatively.

    Parameters
    ----------
    kernel : (channels out, channels in / groups, \*size) array
        Of one to three spatial dimensions.
    input_size : int or tuple of int
        Size of the images.
    stride, padding, padding_mode, dilation, groups
        As in ``torch.nn.Conv2d``; ``padding_mode`` is ``"zeros"`` or ``"circular"``.
    tol, max_iter
        Of the power iteration.

    Returns
    -------
    float
        Time O(n c² (c + log n)) by Fourier, for n pixels and c channels; two convolutions an iteration else.

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
        raise invalid(
            "input_size", f"must hold the kernel, which spans {tuple(s + 1 for s in spans)}", came, "enlarge it"
        )
    same = all(2 * p == span for p, span in zip(pads, spans, strict=True))
    if padding_mode == "circular" and same and set(strides) == {1} and groups == 1:
        return _by_fourier(k, size, dilations)
    tol = check_real("tol", tol, low=0)
    return _by_power(k, size, strides, pads, dilations, padding_mode, groups, tol, max_iter)


def _sizes(parameter: str, value: Any, dim: int, *, least: int) -> Sizes:
    values = tuple(value) if np.ndim(value) else (value,) * dim
    if len(values) != dim:
        requirement = f"must be a whole number or {dim} of them"
        raise invalid(parameter, requirement, repr(value), "pass one for each dimension of the images")
    return tuple(check_whole(parameter, v, least=least) for v in values)


def _by_fourier(kernel: Floats, size: Sizes, dilations: Sizes) -> float:
    # What reaches beyond the image comes in on the other side, so entries are added up at their place modulo the size.
    wrapped = np.zeros((*kernel.shape[:2], *size))
    for place in np.ndindex(*kernel.shape[2:]):
        at = tuple((d * x) % n for d, x, n in zip(dilations, place, size, strict=True))
        wrapped[(slice(None), slice(None), *at)] += kernel[(slice(None), slice(None), *place)]
    channels = np.moveaxis(np.fft.fftn(wrapped, axes=tuple(range(2, kernel.ndim))), (0, 1), (-2, -1))
    return float(np.linalg.norm(channels, ord=2, axis=(-2, -1)).max())


def _by_power(
    kernel: Floats,
    size: Sizes,
    strides: Sizes,
    pads: Sizes,
    dilations: Sizes,
    padding_mode: str,
    groups: int,
    tol: float,
    max_iter: int,
) -> float:
    import torch
    from torch.nn import functional

    convolve = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[kernel.ndim - 2]
    weight = torch.as_tensor(kernel)
    around = [p for pad in reversed(pads) for p in (pad, pad)]
    mode = "constant" if padding_mode == "zeros" else "circular"

    def apply(x: torch.Tensor) -> torch.Tensor:
        wide = functional.pad(x, around, mode=mode)
        return convolve(wide, weight, None, strides, 0, dilations, groups)

    generator = torch.Generator().manual_seed(0)
    shape = (1, kernel.shape[1] * groups, *size)
    x = torch.randn(shape, dtype=torch.float64, generator=generator)
    norm = 0.0
    for _ in range(max_iter):
        x = (x / x.norm()).requires_grad_(True)
        with torch.enable_grad():
            out = apply(x)
            # The adjoint of a linear map is the gradient of half its squared length.
            (back,) = torch.autograd.grad(out, x, out.detach())
        previous, norm = norm, float(out.detach().norm())
        if norm == 0.0 or norm - previous <= tol * norm:
            break
        x = back.detach()
    return norm
