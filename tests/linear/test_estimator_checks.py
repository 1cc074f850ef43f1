"""scikit-learn's own checks on every estimator."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from mauc import MAUCClassifier, MAUCClassifierCV, MAUCPluginClassifier

ESTIMATORS = [
    MAUCClassifier(max_iter=2000),
    MAUCClassifier(log_loss=1.0, max_iter=2000, tol=1e-8),
    MAUCClassifier("hinge", max_iter=2000, tol=1e-3),
    MAUCClassifier("squared", activation="sigmoid", solver="nesterov", max_iter=2000, tol=1e-4),
    # One penalty: folds of repeated samples differ from folds of weighted ones, so their choices may differ as well.
    MAUCClassifierCV(alphas=(1.0,), log_losses=(0.0,), l2s=(1e-2,), cv=2, max_iter=2000, tol=1e-8),
    MAUCPluginClassifier(LogisticRegression()),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
