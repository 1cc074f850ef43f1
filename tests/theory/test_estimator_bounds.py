"""Bounds of fitted models, and the norms of networks that they read."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("torch", reason="needs the extra mauc[torch]")

import torch
from torch import nn

from experiments import datasets
from mauc import MAUCClassifier, MAUCClassifierCV, SurrogateRisk
from mauc.activations import activate
from mauc.theory import bounds
from mauc.theory.bounds import network_norms

DATA = datasets.load_simulated(n_samples=300, n_classes=3, imbalance=4, n_features=5, seed=2)
X, Y = DATA.X, DATA.y


@pytest.fixture(autouse=True)
def same_start():
    torch.manual_seed(0)


def test_linear_from_its_numbers():
    model = MAUCClassifier("exponential", alpha=2.0, l2=1e-2).fit(X, Y)
    found = bounds.for_estimator(model, X, Y, delta=0.1)
    rows = np.column_stack([model.coef_, model.intercept_])
    constants = bounds.surrogate_constants("exponential", alpha=2.0)
    by_hand = bounds.linear(
        SurrogateRisk("exponential", alpha=2.0).value(Y, model.predict_proba(X)),
        np.bincount(Y),
        gamma=max(np.sqrt((row**2).sum()) for row in rows),
        radius=np.sqrt((X**2).sum(axis=1).max() + 1),
        lipschitz=constants.lipschitz,
        bound=constants.bound,
        delta=0.1,
        activation="softmax",
    )
    assert found.terms == pytest.approx(by_hand.terms, rel=1e-9)
    assert "norms are those of the fitted model" in found.note


@pytest.mark.parametrize("activation", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize("p", [2.0, 1.2])
def test_linear_variants(activation, p):
    model = MAUCClassifier("squared", activation=activation, fit_intercept=False, l2=1e-2).fit(X, Y)
    found = bounds.for_estimator(model, X, Y, p=p)
    assert found.inputs["gamma"] == pytest.approx(np.linalg.norm(model.coef_, ord=p, axis=1).max())
    assert found.inputs["radius"] == pytest.approx(np.linalg.norm(X, axis=1).max())
    reach = 2 * found.inputs["gamma"] * found.inputs["radius"] if activation == "identity" else 1.0
    assert found.range == pytest.approx((1 + reach) ** 2)
    rows = bounds.for_estimator(model, sparse.csr_matrix(X), Y, p=p)
    assert rows.total == pytest.approx(found.total)


def test_an_intercept_cancels_in_differences_of_linear_scores():
    model = MAUCClassifier("squared", activation="identity", l2=1e-2).fit(X, Y)
    before = bounds.for_estimator(model, X, Y)
    model.intercept_ = model.intercept_ + 10.0
    assert bounds.for_estimator(model, X, Y).total == pytest.approx(before.total)


def test_pipeline_and_names_of_classes():
    names = np.array(["a", "b", "c"])[Y]
    model = make_pipeline(StandardScaler(), MAUCClassifier(l2=1e-2)).fit(X, names)
    found = bounds.for_estimator(model, X, names)
    alone = bounds.for_estimator(model[-1], model[0].transform(X), names)
    assert found.total == alone.total
    with pytest.raises(ValueError, match="y must have samples of every class of the model, got none of 'c': pass"):
        bounds.for_estimator(model, X[names != "c"], names[names != "c"])
    with pytest.raises(ValueError, match="y must hold classes of the model only, got 'z'"):
        bounds.for_estimator(model, X, np.where(np.arange(300) == 0, "z", names))


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
    found = bounds.for_estimator(network, X, Y, surrogate="squared", initial=start)
    assert found.name == "cnn bound"
    assert found.complexity == 0, "it is where it began"
    with torch.no_grad():
        scores = network(torch.as_tensor(X, dtype=torch.float32)).softmax(1).double().numpy()
    assert found.empirical_risk == pytest.approx(SurrogateRisk("squared").value(Y, scores), rel=1e-5)
    away = bounds.for_estimator(network, X, Y, surrogate="squared")
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
    found = bounds.for_estimator(network, images, y, alpha=2.0)
    assert found.name == "cnn bound"
    assert np.isfinite(found.total)
    assert found.inputs["n_parameters"] == (9 + 1) * 3 + (27 + 1) * 4 + 5 * 3
    assert bounds.for_estimator(network, images.numpy(), y, alpha=2.0).total == pytest.approx(found.total)


def test_a_product_of_norms_beyond_all_floats():
    layers = [layer for _ in range(150) for layer in (nn.Linear(5, 5), nn.ReLU())]
    network = nn.Sequential(*layers, nn.Linear(5, 3))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 1e3
    found = bounds.for_estimator(network.double(), X / 1e3, Y)
    assert np.isfinite(found.total)
    assert found.name == "cnn bound"


def test_the_bound_of_a_network_falls_with_its_data():
    network = plain_network()
    few, many = (bounds.for_estimator(network, np.tile(X, (k, 1)), np.tile(Y, k)) for k in (1, 9))
    assert many.complexity < few.complexity
    assert many.concentration == pytest.approx(few.concentration / 3)


@pytest.mark.parametrize(
    "layer", [nn.Sigmoid(), nn.MaxPool1d(3, stride=1), nn.LeakyReLU(2.0), nn.GELU(), nn.BatchNorm1d(5)], ids=str
)
def test_layers_that_are_not_understood(layer):
    with pytest.raises(ValueError, match=r"network must be nn\.Sequential of linear, convolutional and neutral layers"):
        network_norms(nn.Sequential(layer, nn.Linear(5, 3)), X)


def test_bad_models():
    with pytest.raises(ValueError, match="estimator must be a fitted MAUCClassifier or a torch"):
        bounds.for_estimator(LogisticRegression().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match=r"network must be a torch\.nn\.Module, got list"):
        network_norms([], X)
    with pytest.raises(ValueError, match="network must have a layer with weights"):
        network_norms(nn.ReLU(), X)
    with pytest.raises(ValueError, match="y must hold every column of the module, 0 to C - 1, got 1, 2"):
        bounds.for_estimator(plain_network(), X[Y > 0], Y[Y > 0])
    with pytest.raises(ValueError, match="y must have samples of every class, got 2 for 3 columns"):
        bounds.for_estimator(plain_network(), X[Y < 2], Y[Y < 2])
    with pytest.raises(ValueError, match="delta must be a finite number strictly between 0 and 1"):
        bounds.for_estimator(plain_network(), X, Y, delta=1.5)


def test_a_search_is_bounded_by_what_it_chose():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3)) + np.eye(3)[y]
    search = MAUCClassifierCV(alphas=(4.0,), log_losses=(0.0,), l2s=(1e-1,), cv=2).fit(X, y)
    same = MAUCClassifier("exponential", alpha=4.0, log_loss=0.0, l2=1e-1).fit(X, y)
    assert bounds.for_estimator(search, X, y).total == pytest.approx(bounds.for_estimator(same, X, y).total)


def test_more_rows_do_not_loosen_the_bound_of_a_linear_model():
    rng = np.random.default_rng(0)
    X, y = np.clip(rng.normal(size=(600, 3)), -1, 1), rng.permutation(np.repeat([0, 1, 2], [400, 150, 50]))
    model = MAUCClassifier(l2=1.0).fit(X, y)
    more_X, more_y = np.vstack([X, np.repeat(X[y == 0], 20, axis=0)]), np.append(y, np.zeros(20 * 400, dtype=int))
    first, second = bounds.for_estimator(model, X, y), bounds.for_estimator(model, more_X, more_y)
    assert second.complexity == pytest.approx(first.complexity)
    assert second.concentration < first.concentration


def test_log_odds_of_a_linear_model_are_bounded():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    model = MAUCClassifier("logistic", alpha=1.0, activation="log_odds", l2=1.0).fit(X, y)
    found = bounds.for_estimator(model, X, y)
    assert found.inputs["activation"] == "log_odds"
    scores = activate(model.decision_function(X), "log_odds")
    widest = np.ptp(scores, axis=0).max()
    assert found.range >= np.logaddexp(0.0, widest)
