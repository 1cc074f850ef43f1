"""On workers of their own process: the same numbers, and the same when one of them dies."""

import itertools
import os
import signal

import numpy as np
import pytest

import mauc
from mauc.linear import MAUCClassifier as LocalClassifier

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
md = pytest.importorskip("mauc.dask")

# Libraries that start servers leave sockets and loops to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

rng = np.random.default_rng(0)
y = rng.integers(0, 3, 600)
X = rng.normal(size=(600, 4)) + rng.normal(size=(3, 4))[y]
scores = np.round(rng.normal(size=(600, 3)) + np.eye(3)[y], 2)


def lazy(x):
    return da.from_array(x, chunks=(200, *x.shape[1:]))


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def kill_a_worker(client):
    """As the kernel does where memory is short."""
    address, pid = next(iter(client.run(os.getpid).items()))
    os.kill(pid, signal.SIGKILL)
    return address


def die_once(mark):
    """Kill this worker, unless another one has died already: two may read at the same time."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def results(result):
    return np.array(list(vars(result).values()))


def test_interval_and_the_names_of_its_tasks(client):
    seen = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    found = md.mauc_interval(lazy(y), lazy(scores))
    np.testing.assert_allclose(results(found), results(mauc.mauc_interval(y, scores)), rtol=0, atol=1e-12)
    now = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes)) - seen
    others = {name for name in now if not name.startswith("mauc-")}
    assert {"mauc-own-scores", "mauc-sort-positives", "mauc-count-part", "mauc-influence"} <= now
    assert others <= {"array", "array-original", "tuple", "list"}


@pytest.mark.parametrize("kind", ["array", "frame", "mapped"])
def test_persisted_collections(client, kind):
    if kind == "frame":
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        Y, S = (dd.from_pandas(make(x), npartitions=3) for make, x in ((pd.Series, y), (pd.DataFrame, scores)))
    else:
        Y, S = lazy(y), lazy(scores)
    Y, S = Y.persist(), S.persist()
    if kind == "mapped":
        Y, S = Y.map_blocks(lambda block: block), S.map_blocks(lambda block: block)
    assert md.mauc_score(Y, S) == pytest.approx(mauc.mauc_score(y, scores), abs=1e-12)


def test_metric_survives_the_death_of_a_worker(client, tmp_path):
    """When the scores are read for the second time: what the worker held is made again."""

    def read_then_die(block):
        readings = tmp_path / "readings"
        with readings.open("a") as file:
            file.write("x")
        if readings.stat().st_size >= 5:  # of three partitions
            die_once(tmp_path / "died")
        return block

    found = md.mauc_interval(lazy(y), lazy(scores).map_blocks(read_then_die, dtype=float))
    np.testing.assert_allclose(results(found), results(mauc.mauc_interval(y, scores)), rtol=0, atol=1e-12)
    assert (tmp_path / "readings").stat().st_size > 9, "partitions were read again"


CALLS = {
    "pairwise_auc": (lambda Y, S: md.pairwise_auc(Y, S), lambda: mauc.pairwise_auc(y, scores)),
    "mauc_score": (lambda Y, S: md.mauc_score(Y, S), lambda: mauc.mauc_score(y, scores)),
    "compare_mauc": (
        lambda Y, S: results(md.compare_mauc(Y, S, lazy(scores[:, ::-1].copy()))),
        lambda: results(mauc.compare_mauc(y, scores, scores[:, ::-1])),
    ),
    "binned_mauc": (
        lambda Y, S: md.binned_mauc(Y, S, mauc.BinnedMAUC.for_scores(y, scores)).counts,
        lambda: mauc.BinnedMAUC.for_scores(y, scores).update(y, scores).counts,
    ),
    "predict_proba": (
        lambda Y, S: LAZY_MODEL.predict_proba(S).compute(),
        lambda: LocalClassifier(l2=0.1).fit(scores, y).predict_proba(scores),
    ),
}
LAZY_MODEL = md.MAUCClassifier(l2=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_every_call_survives_the_death_of_a_worker(client, tmp_path, call):
    if call == "predict_proba":
        LAZY_MODEL.fit(lazy(scores), lazy(y))
    died = tmp_path / "died"

    def die(block):
        die_once(died)
        return block

    found = CALLS[call][0](lazy(y), lazy(scores).map_blocks(die, dtype=float, meta=np.zeros((0, 3))))
    np.testing.assert_allclose(found, CALLS[call][1](), rtol=0, atol=1e-6 if call == "predict_proba" else 1e-12)
    assert died.exists()


@pytest.mark.slow
def test_fit_survives_the_death_of_a_worker(client, monkeypatch):
    """In the middle of the iterations: the rows that the worker kept are read again."""
    from mauc.dask._objective import PartitionedObjective

    evaluate, died, evaluations = PartitionedObjective.__call__, [], itertools.count()

    def evaluate_and_lose_a_worker(self, theta):
        if next(evaluations) == 3:
            died.append(kill_a_worker(client))
        return evaluate(self, theta)

    monkeypatch.setattr(PartitionedObjective, "__call__", evaluate_and_lose_a_worker)
    model = md.MAUCClassifier(l2=0.1).fit(lazy(X), lazy(y))
    expected = LocalClassifier(l2=0.1).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
    assert len(died) == 1
    np.testing.assert_allclose(model.predict_proba(lazy(X)).compute(), expected.predict_proba(X), atol=1e-6)


def test_error_comes_from_the_worker_with_its_partition(client):
    bad = scores.copy()
    bad[450, 1] = np.nan
    with pytest.raises(ValueError, match=r"in partition 2, y_score must be finite, got nan at \(50, 1\)"):
        md.mauc_score(lazy(y), lazy(bad))


def test_a_client_that_dies(cluster):
    # Closed twice, a client would leave itself in Dask's configuration.
    with dask.config.set(scheduler=None), distributed.Client(cluster) as client:

        class Closing(md.MAUCClassifier):
            """Loses its client between reading the rows and the first evaluation."""

            def _start(self, *arguments):
                client.close()
                return super()._start(*arguments)

        with pytest.raises(RuntimeError, match="the Dask client was closed, or its scheduler was lost"):
            Closing().fit(lazy(X), lazy(y))


@pytest.mark.slow
def test_xgboost_judged_by_our_metric(client):
    """The recipe of the guide: train some rounds on the workers, judge, go on while the score rises."""
    xgboost = pytest.importorskip("xgboost")
    dxgb = pytest.importorskip("xgboost.dask")
    data, target = lazy(X).persist(), lazy(y).persist()
    matrix = dxgb.DaskDMatrix(client, data, target)
    parameters = {"objective": "multi:softprob", "num_class": 3, "max_depth": 2, "verbosity": 0, "nthread": 1}
    booster, judged = None, []
    for _ in range(2):
        booster = dxgb.train(client, parameters, matrix, num_boost_round=3, xgb_model=booster)["booster"]
        judged.append(md.mauc_score(target, dxgb.predict(client, booster, data)))
    expected = mauc.mauc_score(y, booster.predict(xgboost.DMatrix(X)))
    assert judged[1] == pytest.approx(expected, abs=1e-6)
    assert judged[1] > judged[0]
