"""A surrogate as an object, and one without an α, wherever a name is taken: at default parameters, too."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from cases import Quartic
from pair_loss import PairLoss
from sklearn.exceptions import ConvergenceWarning

from mauc import MAUCClassifier, MAUCClassifierCV, SurrogateRisk
from mauc.surrogates import DistanceWeighted, Exponential, Hinge, Piece, Surrogate, get_surrogate

OBJECT = Exponential(3.0)


def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 20, 10])
    return rng.normal(size=(60, 3)) + 1.5 * np.eye(3)[y], y


def linear(surrogate, **options):
    return MAUCClassifier(surrogate, log_loss=0.0, l2=1.0, **options)


def searched(surrogate, alpha=None):
    grid = {} if alpha is None else {"alphas": (alpha,)}
    return MAUCClassifierCV((surrogate,), log_losses=(0.0,), l2s=(1.0,), cv=2, **grid)


BUILDERS = [linear, searched]
every_estimator = pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)


def scores_of(model):
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


@every_estimator
def test_surrogates_without_an_alpha_to_set_train_at_default_parameters(build):
    by_name = scores_of(build("distance_weighted"))
    np.testing.assert_array_equal(scores_of(build(DistanceWeighted())), by_name)
    assert np.isfinite(scores_of(build(OBJECT))).all()


@every_estimator
def test_alpha_beside_an_object_is_refused_whatever_its_value(build):
    X, y = blobs()
    message = (
        r"^alpha needs a surrogate given by name, got it together with the object Exponential\(alpha=3\.0\): "
        r"set the parameters on the object itself$"
    )
    for alpha in (1.0, 2.0):
        with pytest.raises(ValueError, match=message):
            build(OBJECT, alpha=alpha).fit(X, y)
        with pytest.raises(ValueError, match=r"^alpha does not exist for the distance_weighted surrogate, got \d"):
            build("distance_weighted", alpha=alpha).fit(X, y)


def test_unless_told_alpha_is_the_estimators_own():
    np.testing.assert_array_equal(scores_of(linear("exponential")), scores_of(linear("exponential", alpha=4.0)))


def test_the_search_takes_its_own_alphas_only_where_there_is_one():
    X, y = blobs()
    grid = {"log_losses": (0.0,), "l2s": (1.0,), "cv": 2}
    model = MAUCClassifierCV(("exponential", "distance_weighted", OBJECT), **grid).fit(X, y)
    tried = [(each["surrogate"], each["alpha"]) for each in model.cv_results_["params"]]
    named = [("exponential", alpha) for alpha in (1.0, 4.0, 10.0)]
    assert tried == [*named, ("distance_weighted", None), (OBJECT, None)]
    mixed = MAUCClassifierCV(("exponential",), alphas=(None, 4.0), **grid).fit(X, y)
    assert [each["alpha"] for each in mixed.cv_results_["params"]] == [None, 4.0]


@pytest.mark.parametrize("surrogate", [Quartic(), "distance_weighted"], ids=str)
def test_risks_losses_and_objectives_take_them(surrogate):
    torch = pytest.importorskip("torch")
    from mauc.boosting import lightgbm_objective, xgboost_objective

    X, y = blobs()
    expected = SurrogateRisk(surrogate, scheme="pairwise").value(y, np.exp(X) / np.exp(X).sum(axis=1, keepdims=True))
    assert PairLoss(surrogate)(torch.as_tensor(X), torch.as_tensor(y)).item() == pytest.approx(expected, rel=1e-6)
    if surrogate == "distance_weighted":
        for make in (lightgbm_objective, xgboost_objective):
            assert make(surrogate).risk.surrogate == get_surrogate(surrogate)


def test_a_surrogate_must_be_hashable():
    @dataclass
    class Listed(Surrogate):
        name = "listed"
        breaks: list

        def loss(self, t):
            return np.maximum(1.0 - t, 0.0)

        def derivative(self, t):
            return np.where(t < 1.0, -1.0, 0.0)

        @property
        def pieces(self):
            return Hinge(1.0).pieces

    message = (
        r"surrogate must be hashable, as results are cached by it, got .*Listed\(breaks=\[1\]\): write @dataclass\(fro"
    )
    for make in (SurrogateRisk, get_surrogate, lambda s: MAUCClassifier(s).fit(*blobs())):
        with pytest.raises(ValueError, match=message):
            make(Listed([1]))


def test_an_object_whose_parameters_change_is_another_surrogate():
    class Steep:
        rate = 1.0

        def loss(self, t):
            return np.log1p(np.exp(-self.rate * t))

        def derivative(self, t):
            return -self.rate / (1.0 + np.exp(self.rate * t))

    y, scores, surrogate = np.arange(12) % 3, np.random.default_rng(0).random((12, 3)), Steep()
    for surrogate.rate in (1.0, 8.0):
        exact = SurrogateRisk(surrogate, scheme="pairwise").value(y, scores)
        assert SurrogateRisk(surrogate).value(y, scores) == pytest.approx(exact, rel=1e-6)


def test_a_surrogate_that_is_0_for_all_differences_has_risk_0():
    @dataclass(frozen=True)
    class Late(Surrogate):
        """Falls only below −2."""

        name = "late"

        def loss(self, t):
            return np.expm1(np.maximum(-2.0 - t, 0.0))

        def derivative(self, t):
            return np.where(t < -2.0, -np.exp(np.maximum(-2.0 - t, 0.0)), 0.0)

        @property
        def pieces(self):
            return Piece(-np.inf, -2.0, None), Piece(-2.0, np.inf, (0.0,))

    X, y = blobs()
    value, gradient = SurrogateRisk(Late()).value_and_gradient(y, X / np.abs(X).max())
    assert (value, gradient.any()) == (0.0, False)
    expected = SurrogateRisk(Late(), scheme="pairwise").value(y, X)
    assert SurrogateRisk(Late()).value(y, X) == pytest.approx(expected, rel=1e-5)
    assert expected > 0.0


def test_an_object_with_unhashable_functions_is_refused():
    @dataclass
    class Function:
        scale: float

        def __call__(self, t):
            return self.scale * t

    class Linear:
        loss, derivative = Function(-1.0), Function(0.0)

    with pytest.raises(ValueError, match="surrogate must be hashable, as results are cached by it, got"):
        SurrogateRisk(Linear())
