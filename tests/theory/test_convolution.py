"""Spectral norms of convolutions against the singular values of their dense matrices."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra mauc[torch]")

import torch

from mauc.theory.bounds import conv_spectral_norm


def dense_norm(layer, size):
    """Largest singular value of the matrix whose columns are the images of the unit images."""
    shape = (layer.in_channels, *size)
    units = torch.eye(int(np.prod(shape)), dtype=torch.float64).reshape(-1, *shape)
    with torch.no_grad():
        out = layer.double()(units).reshape(len(units), -1)
    return float(torch.linalg.matrix_norm(out, ord=2))


CASES = [
    (torch.nn.Conv1d, (3, 4, 3), (9,), {"padding": 1, "padding_mode": "circular"}),
    (torch.nn.Conv1d, (2, 2, 5), (3,), {"padding": 2, "padding_mode": "circular"}),
    (torch.nn.Conv2d, (2, 3, 3), (5, 6), {"padding": 1, "padding_mode": "circular"}),
    (torch.nn.Conv2d, (2, 3, 3), (6, 6), {"padding": 2, "dilation": 2, "padding_mode": "circular"}),
    (torch.nn.Conv3d, (1, 2, 3), (3, 4, 3), {"padding": 1, "padding_mode": "circular"}),
    (torch.nn.Conv2d, (2, 3, 3), (5, 6), {"padding": 1}),
    (torch.nn.Conv2d, (2, 3, 3), (6, 6), {}),
    (torch.nn.Conv2d, (2, 3, 3), (6, 7), {"stride": 2, "padding": 1}),
    (torch.nn.Conv2d, (2, 3, 3), (6, 6), {"stride": 2, "padding": 1, "padding_mode": "circular"}),
    (torch.nn.Conv2d, (4, 4, 3), (5, 5), {"padding": 1, "groups": 2}),
    (torch.nn.Conv1d, (2, 2, 3), (8,), {"padding": 2, "dilation": 2}),
    (torch.nn.Conv3d, (1, 2, 2), (3, 3, 3), {}),
]


@pytest.mark.parametrize(("kind", "channels", "size", "options"), CASES)
def test_against_the_dense_matrix(kind, channels, size, options):
    torch.manual_seed(0)
    layer = kind(*channels, bias=False, **options)
    found = conv_spectral_norm(layer.weight.detach().numpy(), size, **options)
    exact = options.get("padding_mode") == "circular" and "stride" not in options
    norm = dense_norm(layer, size)
    assert norm * (1 - 1e-12) <= found <= norm * (1 + (1e-6 if exact else 2e-3))


def test_no_iteration_from_below():
    """Two nearly equal largest values: power iteration and a short Lanczos end below the norm; the bound does not."""
    kernel = np.array([[[1.0, 1.0, 1.0]]])
    matrix = sum(np.eye(400, k=k) for k in (-1, 0, 1))
    norm = np.linalg.norm(matrix, ord=2)
    x = np.random.default_rng(0).normal(size=400)
    for _ in range(300):
        x = matrix.T @ (matrix @ x)
        x /= np.linalg.norm(x)
    assert np.linalg.norm(matrix @ x) < norm * (1 - 1e-5)
    for steps, slack in ((40, 0.1), (300, 2e-3)):
        found = conv_spectral_norm(kernel, 400, padding=1, steps=steps)
        assert norm <= found <= norm * (1 + slack)


def test_circular_needs_no_torch(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    kernel = np.random.default_rng(0).normal(size=(2, 2, 3, 3))
    assert conv_spectral_norm(kernel, 8, padding=1, padding_mode="circular") > 0


def test_a_circular_convolution_bounds_the_one_with_zeros():
    kernel = np.random.default_rng(0).normal(size=(3, 2, 3, 3))
    zeros = conv_spectral_norm(kernel, 6, padding=1)
    # Zeros around an image of 6 are a circular image of 8 that is 0 outside.
    assert zeros <= conv_spectral_norm(kernel, 8, padding=1, padding_mode="circular") * (1 + 2e-3)
    assert conv_spectral_norm(np.zeros((1, 1, 3)), 4, padding=1) == 0.0


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"kernel must be finite, of shape \(channels out, channels in, \*size\)"):
        conv_spectral_norm(np.ones((2, 2)), 4)
    with pytest.raises(ValueError, match=r"input_size must hold the kernel, which spans \(5,\), got \(3,\) with"):
        conv_spectral_norm(np.ones((1, 1, 5)), 3)
    with pytest.raises(ValueError, match="padding_mode must be one of 'zeros', 'circular', got 'reflect'"):
        conv_spectral_norm(np.ones((1, 1, 3)), 5, padding_mode="reflect")
    with pytest.raises(ValueError, match="steps must be a whole number of at least 20, got 3"):
        conv_spectral_norm(np.ones((1, 1, 3)), 5, steps=3)
    with pytest.raises(ValueError, match="stride must be a whole number or 1 of them"):
        conv_spectral_norm(np.ones((1, 1, 3)), 5, stride=(1, 1))
