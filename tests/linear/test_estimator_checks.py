"""scikit-learn's own checks on the linear models."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mauc import MAUCClassifier, MAUCClassifierCV

ESTIMATORS = [
    MAUCClassifier(max_iter=2000),
    # One penalty: folds of repeated samples differ from folds of weighted ones, so their choices may differ as well.
    MAUCClassifierCV(alphas=(1.0,), log_losses=(0.0,), l2s=(1e-2,), cv=2, max_iter=2000, tol=1e-8),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
