"""Children that do tasks, and that a deadline ends."""

import math
import operator
import os
import pickle
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from sleeper import Breaker, Sleeper

from mauc.ensemble import MAUCStackingClassifier, default_estimators
from mauc.ensemble import classifier as module
from mauc.ensemble.fitting import InProcess, TrainingData, ctrl_c_stops
from mauc.ensemble.planner import Member, StackPlan
from mauc.ensemble.workers import Answer, Workers


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as started:
        yield started


def later(seconds=600.0):
    return time.monotonic() + seconds


def test_answers_are_those_of_the_tasks_and_errors_come_back(workers):
    tasks = [partial(operator.add, k) for k in range(5)] + [partial(operator.floordiv, 1)]
    found = sorted(workers.run(tasks, later(), 0), key=lambda answer: answer.index)
    assert [answer.value for answer in found] == [0, 1, 2, 3, 4, None]
    assert isinstance(found[-1].error, ZeroDivisionError)
    assert [answer.value for answer in workers.run([partial(operator.add, 1)], later(1e12), 20)] == [21]
    assert [answer.value for answer in workers.run([partial(operator.add, 1, 2), list], later())] == [3, []]


def test_what_sleeps_is_ended_and_the_next_tasks_are_done(workers):
    assert list(workers.run([time.sleep, operator.neg], later(0.5), 10_000)) == []
    assert [answer.value for answer in workers.run([operator.neg], later(), 10_000)] == [-10_000]


def test_a_child_that_dies_is_an_error_and_is_replaced(workers):
    (lost,) = workers.run([_die], later())
    assert "its process ended" in str(lost.error)
    (found,) = workers.run([os.getpid], later())
    assert found.value != os.getpid()


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_cannot_be_sent_is_an_error_and_other_answers_stay_in_place(workers):
    tasks = [partial(operator.add, lambda: 0), *(partial(operator.add, k) for k in range(4))]
    found = sorted(workers.run(tasks, later(), 1), key=lambda answer: answer.index)
    assert "lambda" in str(found[0].error)
    assert [answer.value for answer in found[1:]] == [1, 2, 3, 4]
    (unread,) = workers.run([operator.pos], later(), Unreadable())
    assert "its process ended" in str(unread.error)
    assert [answer.value for answer in workers.run([operator.pos] * 3, later(), 5)] == [5, 5, 5]


def test_training_data_can_be_used_while_threads_pickle_it():
    class Big(list):
        """Takes long to pickle: another thread uses the data meanwhile."""

        def __reduce__(self):
            used.append(data.held_out)
            return list, ()

    used = []
    rows = np.arange(6)
    data = TrainingData(
        X=Big(), codes=rows % 2, n_classes=2, weight=None, groups=None, used_rows=rows, folds=[(rows[:3], rows[3:])]
    )
    pickle.dumps(data)
    np.testing.assert_array_equal(used[0], [3, 4, 5])


class Unreadable:
    def __reduce__(self):
        return _fail, ()


def _fail():
    raise ValueError("unreadable")


def planned(monkeypatch, *early, **models):
    members = tuple(Member(name, model, 10**6) for name, model in models.items())
    monkeypatch.setattr(module, "plan_members", lambda *_: StackPlan(members, 2, early))


def test_a_member_that_never_ends_costs_no_other(monkeypatch, workers):
    et = dict(default_estimators(n_trees=5))["et"]
    planned(monkeypatch, "et", broken=Breaker(), forever=Sleeper(), et=et)
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    list(workers.run([os.getpid], later()))  # the child is there
    model = MAUCStackingClassifier()
    model._train(X, y, deadline=later(4), workers=workers)
    assert list(model.named_estimators_) == ["et"]
    assert model.cut_ == {"broken": "failed: no room", "forever": "was not ready in time"}
    planned(monkeypatch, et=et)
    alone = MAUCStackingClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_control_c_keeps_what_is_done_if_that_is_wanted_and_leaves_no_child(monkeypatch):
    class Impatient:
        def begins(self, name, step):
            """Nothing."""

        def ends(self, name, score, seconds):
            signal.raise_signal(signal.SIGINT)

    planned(monkeypatch, hgb=dict(default_estimators())["hgb"].set_params(max_iter=5), forever=Sleeper())
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    said = threading.Event()
    with Workers(1) as workers, ctrl_c_stops(workers, said.set):
        model = MAUCStackingClassifier()
        model._train(X, y, deadline=later(), workers=workers, watch=Impatient())
        assert said.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert list(model.named_estimators_) == ["hgb"]
    assert model.cut_ == {"forever": "was not ready when Ctrl-C came"}
    with Workers(1) as workers:
        (child,) = workers.run([os.getpid], later())
        assert alive(child.value)
        with pytest.raises(KeyboardInterrupt):
            MAUCStackingClassifier()._train(X, y, deadline=later(), workers=workers, watch=Impatient())
    assert not alive(child.value)


def test_a_small_forest_replaces_trees_that_are_not_ready(monkeypatch, workers):
    planned(monkeypatch, lr=dict(default_estimators())["lr"], rf=Breaker())
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    model = MAUCStackingClassifier()
    model._train(X, y, deadline=later(), workers=workers)
    assert list(model.named_estimators_) == ["lr", "starter"]
    assert len(model.estimators_[1].estimators[0]) == 60
    assert model.cut_ == {"rf": "failed: no room"}


def test_where_nothing_is_ready_there_is_a_small_forest(monkeypatch):
    planned(monkeypatch, forever=Sleeper())
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    model = MAUCStackingClassifier(time_limit=0.2).fit(X, y)
    assert [len(average.estimators[0]) for average in model.estimators_] == [20]
    assert model.cut_["starter"] == "has 20 trees instead of 60: there is no time for more"
    assert list(model.cut_) == ["starter", "forever"]
    assert model.score(X, y) > 0.8
    assert math.isfinite(model.oof_scores_["combination"])


class _NoMemory(InProcess):
    """Fails to encode texts, as a child does that has too little memory."""

    def run(self, tasks, deadline, shared=None):
        if tasks and tasks[0].func is module.encode_column:
            return iter([Answer(0, error=RuntimeError("no memory"))])
        return super().run(tasks, deadline, shared)


def test_texts_are_encoded_within_the_time_limit_and_after_an_error(monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    planned(monkeypatch, et=dict(default_estimators(0, 5))["et"])
    y = np.arange(120) % 3
    words = [f"{'abc'[k]} {j} " + "word " * 600 for j, k in enumerate(y)]
    X = pd.DataFrame({"note": words})
    model = MAUCStackingClassifier(time_limit=6.0).fit(X, y)
    replaced = "are replaced by their places in the alphabet: "
    assert model.cut_["texts and dates"] == replaced + "there is no time to encode them"
    model = MAUCStackingClassifier()
    model._train(X, y, deadline=later(), workers=_NoMemory())
    assert model.cut_["texts and dates"] == replaced + "encoding them failed: no memory"
    assert model.oof_scores_["combination"] > 0.9


def test_columns_of_texts_that_are_ready_are_kept_and_all_are_as_without_a_limit(monkeypatch, workers):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    planned(monkeypatch, et=dict(default_estimators(0, 5))["et"])
    y = np.arange(90) % 3
    notes = [f"{'abc'[k]}{j} " + "word " * 700 for j, k in enumerate(y)]
    X = pd.DataFrame({"note": notes, "nota": [each[::-1] for each in notes], "size": np.arange(90.0)})
    days = pd.Series([pd.Timestamp("2024-01-01") + pd.Timedelta(days=7 * j) for j in range(90)], dtype=object)
    dated = X.assign(day=days)
    weight = np.where(np.arange(90) < 70, 1.0, 0.0)
    expected = MAUCStackingClassifier().fit(dated, y, weight)
    model = MAUCStackingClassifier()
    model._train(dated, y, weight, extra=dated[60:], deadline=later(), workers=workers)
    assert [type(steps[-1]).__name__ for steps in model.columns_.steps_.values()][-1] == "DateColumn"
    np.testing.assert_array_equal(model.predict_proba(dated), expected.predict_proba(dated))
    alone = MAUCStackingClassifier().fit(X[:60], y[:60])
    model = MAUCStackingClassifier()
    fits = model._train(X[:60], y[:60], extra=X[60:], deadline=later(), workers=workers)
    assert model.cut_ == {}
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(
        fits.extra("et"), alone.estimators_[0].predict_proba(alone.columns_.transform(X[60:]))
    )

    class OneReady(InProcess):
        def run(self, tasks, deadline, shared=None):
            return super().run(tasks[:1] if tasks[0].func is module.encode_column else tasks, deadline, shared)

    model = MAUCStackingClassifier()
    model._train(X, y, deadline=later(), workers=OneReady())
    assert list(model.cut_) == ["1 of 2 columns of texts and dates"]
    kinds = [type(steps[-1]).__name__ for steps in model.columns_.steps_.values()]
    assert kinds == ["TextColumn", "TextPlace"]
