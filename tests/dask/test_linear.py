"""The linear model of partitions is the linear model of the whole."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mauc
from mauc.linear import MAUCClassifier as LocalClassifier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
MAUCClassifier = pytest.importorskip("mauc.dask").MAUCClassifier


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def simulated(n=300, n_features=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n - n_classes, p=[0.7, 0.2, 0.1])])
    X = rng.normal(size=(n, n_features)) + rng.normal(size=(n_classes, n_features))[y]
    return X, y, 0.5 + rng.random(n)


X, y, w = simulated()
EDGES = (0, 100, 100, 240)


def chunks(x):
    """Uneven ones, two of them empty."""
    sizes = tuple(np.diff([0, *EDGES, len(x)]).tolist())
    return da.from_array(x, chunks=(sizes, *x.shape[1:]))


def assert_same(model, expected):
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=0, atol=1e-6)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_array_equal(model.classes_, expected.classes_)


@pytest.mark.parametrize(
    "options",
    [
        {"surrogate": "exponential", "alpha": 4.0},
        {"pairs": "ova", "fit_intercept": False},
        {"activation": "identity", "alpha": 0.5, "l2": 0.1},
        {"log_loss": 0.5, "activation": "sigmoid", "tol": 1e-8},
        {"log_loss": 0.5, "balanced": False, "pairs": "ova"},
        {"log_loss": 0.0, "activation": "log_odds", "alpha": 0.5},
        {"l2": None},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_coefficients(options):
    """Every kind of sum that travels, with every activation and the log-loss."""
    options = {"l2": 1e-2, "tol": 1e-7, **options}
    assert_same(MAUCClassifier(**options).fit(chunks(X), chunks(y), chunks(w)), LocalClassifier(**options).fit(X, y, w))


def test_without_weights():
    for log_loss in (0, 0.5):
        expected = LocalClassifier(l2=1e-2, log_loss=log_loss).fit(X, y)
        assert_same(MAUCClassifier(l2=1e-2, log_loss=log_loss).fit(chunks(X), chunks(y)), expected)


class TestKindsOfInput:
    expected = LocalClassifier(l2=1e-2).fit(X, y)

    def test_sparse_blocks(self):
        blocks = da.from_array(X, chunks=(80, 4)).map_blocks(sparse.csr_matrix)
        model = MAUCClassifier(l2=1e-2).fit(blocks, da.from_array(y, chunks=80))
        assert_same(model, self.expected)
        proba = np.vstack([*dask.compute(*model.predict_proba(blocks).to_delayed().ravel())])
        np.testing.assert_allclose(proba, self.expected.predict_proba(X), atol=1e-6)

    def test_data_frames_of_unknown_size(self):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["x", "y", "z"])[y], weight=w)
        table = dd.from_pandas(frame, npartitions=4)
        table = table[table["a"] < 1e9]
        model = MAUCClassifier(l2=1e-2).fit(table[list("abcd")], table["kind"])
        expected = LocalClassifier(l2=1e-2).fit(frame[list("abcd")], frame["kind"])
        assert_same(model, expected)
        assert model.feature_names_in_.tolist() == list("abcd")
        assert model.predict(table[list("abcd")]).compute().tolist() == expected.predict(frame[list("abcd")]).tolist()
        assert model.score(table[list("abcd")], table["kind"]) == pytest.approx(
            expected.score(frame[list("abcd")], frame["kind"]), abs=1e-9
        )

    def test_float32_and_blocks_of_columns(self):
        narrow = X.astype(np.float32)
        model = MAUCClassifier(l2=1e-2).fit(da.from_array(narrow, chunks=(90, 3)), da.from_array(y, chunks=300))
        np.testing.assert_allclose(model.coef_, LocalClassifier(l2=1e-2).fit(narrow, y).coef_, atol=1e-4)


class TestPredictions:
    model = None

    @pytest.fixture(autouse=True)
    def fitted(self):
        self.model = MAUCClassifier(l2=1e-2).fit(chunks(X), chunks(y))
        self.local = self.model.to_local()

    def test_lazy(self):
        lazy = chunks(X)
        for method in ("predict_proba", "predict", "decision_function"):
            found = getattr(self.model, method)(lazy)
            assert found.shape[0] == len(X)
            np.testing.assert_array_equal(found.compute(), getattr(self.local, method)(X))
            np.testing.assert_array_equal(getattr(self.model, method)(X), getattr(self.local, method)(X))

    def test_two_classes(self):
        two = MAUCClassifier().fit(da.from_array(X, chunks=(99, 4)), da.from_array(y > 0, chunks=99))
        found = two.decision_function(da.from_array(X, chunks=(99, 4)))
        assert found.shape == (len(X),)
        np.testing.assert_array_equal(found.compute(), two.to_local().decision_function(X))

    def test_score(self):
        assert self.model.score(chunks(X), chunks(y), chunks(w)) == pytest.approx(self.local.score(X, y, w), abs=1e-12)
        assert self.model.score(X, y) == self.local.score(X, y)

    def test_local_model_is_plain(self):
        assert type(self.local) is mauc.MAUCClassifier
        assert self.local.get_params() == self.model.get_params()
        assert self.local.n_features_in_ == 4

    def test_no_probabilities_without_softmax(self):
        model = MAUCClassifier(activation="sigmoid", log_loss=0.0)
        assert not hasattr(model, "predict_proba")
        assert clone(model).activation == "sigmoid"

    @pytest.mark.slow
    def test_local_model_goes_through_a_file(self, tmp_path):
        io = pytest.importorskip("skops.io")
        io.dump(self.local, tmp_path / "model.skops")
        trusted = io.get_untrusted_types(file=tmp_path / "model.skops")
        again = io.load(tmp_path / "model.skops", trusted=trusted)
        np.testing.assert_array_equal(again.predict_proba(X), self.local.predict_proba(X))


def test_warm_start_takes_no_step():
    model = MAUCClassifier(l2=1e-2, warm_start=True).fit(chunks(X), chunks(y))
    assert model.fit(chunks(X), chunks(y)).n_iter_ <= 1


def test_no_convergence():
    with pytest.warns(ConvergenceWarning, match="L-BFGS stopped before"):
        MAUCClassifier(max_iter=1).fit(chunks(X), chunks(y))


class TestBadInput:
    def test_nan_is_named_by_partition_and_row(self):
        bad = X.copy()
        bad[103, 2] = np.nan
        with pytest.raises(ValueError, match="in partition 3, X must be finite, got NaN or an infinity in row 3"):
            MAUCClassifier().fit(chunks(bad), chunks(y))
        blocks = da.from_array(bad, chunks=(100, 4)).map_blocks(sparse.csr_matrix)
        with pytest.raises(ValueError, match="in partition 1, X must be finite, got NaN or an infinity in row 3"):
            MAUCClassifier().fit(blocks, da.from_array(y, chunks=100))

    def test_rows_that_do_not_match(self):
        lazy = [
            da.from_array(x, chunks=(cut, *x.shape[1:])).map_blocks(
                lambda b: b, chunks=((np.nan,) * 2, *((k,) for k in x.shape[1:])), dtype=x.dtype
            )
            for x, cut in ((X, (100, 200)), (y, (101, 199)))
        ]
        with pytest.raises(ValueError, match=r"in partition \d, y must have one class per row of X, got \d+ for \d+"):
            MAUCClassifier().fit(*lazy)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: MAUCClassifier().fit(X, y), "X must be a Dask array, data frame or series, got ndarray"),
            (lambda: MAUCClassifier().fit(chunks(X), None), "y is required"),
            (lambda: MAUCClassifier().fit(chunks(y), chunks(y)), "X must have two dimensions, got 1"),
            (lambda: MAUCClassifier().fit(chunks(X), chunks(0 * y)), "y must hold two classes or more, got 1 class, 0"),
            (lambda: MAUCClassifier(l2=-1).fit(chunks(X), chunks(y)), "l2 must be"),
            (
                lambda: MAUCClassifier("squared").fit(chunks(X), chunks(y)),
                "surrogate must be 'exponential' on Dask, got squared: train the others in memory",
            ),
            (
                lambda: MAUCClassifier(log_loss=1, pairs=[[0, 1, 2], [3, 0, 4], [5, 7, 0]]).fit(chunks(X), chunks(y)),
                "log_loss needs pairs that are products",
            ),
            (lambda: MAUCClassifier().fit(chunks(X), chunks(y), chunks(w * (y != 1))), "sample_weight must have a pos"),
        ],
    )
    def test_messages(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()
