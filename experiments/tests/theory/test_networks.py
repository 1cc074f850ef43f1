"""Bounds of networks, and the norms that they read."""

import copy

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra mauc[torch]")

import torch
from torch import nn

from experiments import datasets
from experiments.theory import network_bound, network_norms
from mauc import SurrogateRisk
from mauc.theory import bounds

DATA = datasets.load_simulated(n_samples=300, n_classes=3, imbalance=4, n_features=5, seed=2)
X, Y = DATA.X, DATA.y


@pytest.fixture(autouse=True)
def same_start():
    torch.manual_seed(0)


def plain_network(bias=True):
    return nn.Sequential(nn.Linear(5, 8, bias=bias), nn.ReLU(), nn.Linear(8, 3, bias=bias))


def test_norms_without_biases():
    network = plain_network(bias=False)
    norms = network_norms(network, X)
    first, second = (layer.weight.detach().double().numpy() for layer in (network[0], network[2]))
    assert norms.frobenius == pytest.approx([np.linalg.norm(first), np.linalg.norm(second)])
    assert norms.spectral == pytest.approx([np.linalg.norm(first, 2), np.linalg.norm(second, 2)])
    assert norms.initial_spectral == (0.0, 0.0)
    assert norms.distances == norms.spectral
    assert norms.n_parameters == 5 * 8 + 8 * 3
    assert norms.depth == 2
    assert norms.radius(2.0) == 2.0


def test_biases_are_weights_of_a_feature_that_is_1():
    network = plain_network()
    norms = network_norms(network, X)
    last = np.column_stack([network[2].weight.detach(), network[2].bias.detach()])
    weight, bias = (parameter.detach().numpy() for parameter in network[0].parameters())
    first = np.block([[weight, bias[:, None]], [np.zeros((1, 5)), np.ones(1)]])
    assert norms.frobenius == pytest.approx([np.linalg.norm(first), np.linalg.norm(last)], rel=1e-6)
    assert norms.spectral[0] >= np.linalg.norm(first, 2)
    assert norms.radius(2.0) == pytest.approx(np.sqrt(5))
    assert norms.n_parameters == sum(p.numel() for p in network.parameters())


def test_distance_from_initial_weights():
    network = plain_network()
    start = copy.deepcopy(network)
    with torch.no_grad():
        network[0].weight += 0.1
        network[2].bias += 0.5
    for initial in (start, start.state_dict()):
        norms = network_norms(network, X, initial=initial)
        assert norms.distances == pytest.approx([0.1 * np.sqrt(40), 0.5 * np.sqrt(3)], rel=1e-5)
    assert network_norms(start, X, initial=start).distance == 0
    with pytest.raises(ValueError, match="initial must hold the weights of the network"):
        network_norms(network, X, initial=nn.Linear(5, 3))


def test_batch_normalisation_is_folded():
    network = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    rows = torch.as_tensor(X, dtype=torch.float32)
    for _ in range(20):
        network(rows)
    with torch.no_grad():
        network[1].weight.uniform_(0.5, 2)
        network[1].bias.normal_()
    network.eval()
    twin = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    with torch.no_grad():
        zero = network[1](network[0](torch.zeros(1, 5)))
        twin[0].bias.copy_(zero[0])
        twin[0].weight.copy_((network[1](network[0](torch.eye(5))) - zero).T)
        twin[2].load_state_dict(network[3].state_dict())
    ours, folded = network_norms(network, X), network_norms(twin, X)
    assert ours.frobenius == pytest.approx(folded.frobenius, rel=1e-5)
    assert ours.spectral == pytest.approx(folded.spectral, rel=1e-5)
    assert not network.training


def image_network(padding_mode="circular"):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1, padding_mode=padding_mode),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )


def test_networks_do_not_stretch_more_than_their_norms_say():
    """The product of the norms is a Lipschitz constant, in the input and, by the distance, in the weights."""
    start = image_network().double().eval()
    network = copy.deepcopy(start)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    images = torch.randn(6, 1, 8, 8, dtype=torch.float64)
    norms = network_norms(network, images, initial=start)
    assert norms.frobenius is None
    assert norms.depth == 3
    with torch.no_grad():
        out, other = network(images), start(images)
    length = max(norms.radius(float(image.norm())) for image in images)
    assert float(out.norm(dim=1).max()) <= length * np.prod(norms.spectral)
    moved = float((out - other).norm(dim=1).max())
    reach = np.prod([max(1.0, s) for s in norms.initial_spectral]) * (1 + norms.distance / 3) ** 3
    assert 0 < moved <= length * reach * norms.distance


def test_for_a_module():
    network = plain_network()
    start = copy.deepcopy(network)
    found = network_bound(network, X, Y, surrogate="squared", initial=start)
    assert found.name == "cnn bound"
    assert found.complexity == 0, "it is where it began"
    with torch.no_grad():
        scores = network(torch.as_tensor(X, dtype=torch.float32)).softmax(1).double().numpy()
    assert found.empirical_risk == pytest.approx(SurrogateRisk("squared").value(Y, scores), rel=1e-5)
    away = network_bound(network, X, Y, surrogate="squared")
    norms = network_norms(network, X)
    constants, length = bounds.surrogate_constants("squared"), norms.radius(np.linalg.norm(X, axis=1).max())
    shared = {"radius": length, "lipschitz": constants.lipschitz, "bound": constants.bound}
    near = {"spectral_norms": norms.initial_spectral, "distance": norms.distance, "n_parameters": norms.n_parameters}
    counts, gamma = np.bincount(Y), np.prod(norms.frobenius)
    peeled = bounds.dnn(away.empirical_risk, counts, gamma=gamma, depth=norms.depth, **shared)
    assert away.total == min(peeled.total, bounds.cnn(away.empirical_risk, counts, **near, **shared).total)
    assert network.training, "left as it was"


def test_for_a_convolutional_module():
    network = image_network("zeros")
    images = torch.randn(30, 1, 8, 8)
    y = np.arange(30) % 3
    found = network_bound(network, images, y, alpha=2.0)
    assert found.name == "cnn bound"
    assert np.isfinite(found.total)
    assert found.inputs["n_parameters"] == (9 + 1) * 3 + (27 + 1) * 4 + 5 * 3
    assert network_bound(network, images.numpy(), y, alpha=2.0).total == pytest.approx(found.total)


def test_a_product_of_norms_beyond_all_floats():
    layers = [layer for _ in range(150) for layer in (nn.Linear(5, 5), nn.ReLU())]
    network = nn.Sequential(*layers, nn.Linear(5, 3))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 1e3
    found = network_bound(network.double(), X / 1e3, Y)
    assert np.isfinite(found.total)
    assert found.name == "cnn bound"


def test_the_bound_of_a_network_falls_with_its_data():
    network = plain_network()
    few, many = (network_bound(network, np.tile(X, (k, 1)), np.tile(Y, k)) for k in (1, 9))
    assert many.complexity < few.complexity
    assert many.concentration == pytest.approx(few.concentration / 3)


@pytest.mark.parametrize(
    "layer", [nn.Sigmoid(), nn.MaxPool1d(3, stride=1), nn.LeakyReLU(2.0), nn.GELU(), nn.BatchNorm1d(5)], ids=str
)
def test_layers_that_are_not_understood(layer):
    with pytest.raises(ValueError, match=r"network must be nn\.Sequential of linear, convolutional and neutral layers"):
        network_norms(nn.Sequential(layer, nn.Linear(5, 3)), X)


def test_bad_networks():
    with pytest.raises(ValueError, match=r"network must be a torch\.nn\.Module, got list"):
        network_norms([], X)
    with pytest.raises(ValueError, match="network must have a layer with weights"):
        network_norms(nn.ReLU(), X)
    with pytest.raises(ValueError, match="y must have samples of every class, got none of column 2"):
        network_bound(plain_network(), X[Y < 2], Y[Y < 2])
