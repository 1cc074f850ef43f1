"""Spectral norms of convolutions against the singular values of their dense matrices."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra mauc[torch]")

import torch

from experiments.theory import conv_spectral_norm


def dense_norm(layer, size):
    """Largest singular value of the matrix whose columns are the images of the unit images."""
    shape = (layer.in_channels, *size)
    units = torch.eye(int(np.prod(shape)), dtype=torch.float64).reshape(-1, *shape)
    with torch.no_grad():
        out = layer.double()(units).reshape(len(units), -1)
    return float(torch.linalg.matrix_norm(out, ord=2))


CASES = [
    (torch.nn.Conv1d, (3, 4, 3), (9,), {"padding": 1, "padding_mode": "circular"}),
    (torch.nn.Conv2d, (2, 3, 3), (5, 6), {"padding": "same"}),
    (torch.nn.Conv2d, (2, 3, 3), (5, 6), {"padding": 1, "padding_mode": "reflect"}),
    (torch.nn.Conv2d, (2, 3, 3), (5, 6), {"padding": 1, "padding_mode": "circular"}),
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
    layer = kind(*channels, **options)
    found = conv_spectral_norm(layer, size)
    layer.bias = None
    norm = dense_norm(layer, size)
    assert norm <= found <= norm * (1 + 2e-3)


def test_no_iteration_from_below():
    """Two nearly equal largest values: power iteration and a short Lanczos end below the norm; the bound does not."""
    layer = torch.nn.Conv1d(1, 1, 3, padding=1)
    layer.weight.data = torch.ones(1, 1, 3)
    matrix = sum(np.eye(400, k=k) for k in (-1, 0, 1))
    norm = np.linalg.norm(matrix, ord=2)
    x = np.random.default_rng(0).normal(size=400)
    for _ in range(300):
        x = matrix.T @ (matrix @ x)
        x /= np.linalg.norm(x)
    assert np.linalg.norm(matrix @ x) < norm * (1 - 1e-5)
    for steps, slack in ((40, 0.1), (300, 2e-3)):
        found = conv_spectral_norm(layer, (400,), steps=steps)
        assert norm <= found <= norm * (1 + slack)


def test_a_kernel_of_zeros():
    layer = torch.nn.Conv1d(1, 1, 3)
    layer.weight.data.zero_()
    assert conv_spectral_norm(layer, (4,)) == 0.0


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"layer must be a convolution, got Linear: pass torch\.nn\.Conv1d"):
        conv_spectral_norm(torch.nn.Linear(2, 2), (4,))
    with pytest.raises(ValueError, match="steps must be a whole number of at least 20, got 3"):
        conv_spectral_norm(torch.nn.Conv1d(1, 1, 3), (5,), steps=3)
