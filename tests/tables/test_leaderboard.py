"""The comparison of models: what is chosen, by which rows, and what time allows."""

import re
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from mauc import mauc_score
from mauc.ensemble import default_estimators
from mauc.model_selection import RareClassKFold
from mauc.tables import candidates as candidates_module
from mauc.tables.candidates import CANDIDATES, Candidate, LeftOut, Part, Trained
from mauc.tables.durations import BY_VALUE, Size, StackPlan, parts_of_stack, seconds_of, slowness
from mauc.tables.leaderboard import Silent, compare_candidates


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    labels = np.repeat(["oak", "elm", "yew"], [60, 25, 8])
    return rng.normal(size=(93, 4)) + 1.2 * np.eye(3, 4)[np.unique(labels, return_inverse=True)[1]], labels


def folds_of(labels, n=3):
    return list(RareClassKFold(n).split(labels, labels))


def scores_of(part, validation):
    """Held-out scores whose multiclass AUC is a given one, a multiple of 0.1; none for NaN."""
    scores = np.full((len(part.labels), 3), np.nan)
    if not np.isnan(validation):
        for c in range(3):
            codes = np.unique(part.labels, return_inverse=True)[1]
            for k in range(3):
                place = np.linspace(0, 1, np.sum(codes == k), endpoint=False)
                scores[codes == k, c] = np.where(c == k, place < 2 * validation - 1, 0.0)
    return scores


def fake(name, validation, before=None):
    def train(part):
        if before is not None:
            before(part)
        return Trained(DummyClassifier().fit(part.X, part.labels), scores_of(part, validation))

    return Candidate(name, train)


class Heard(Silent):
    def __init__(self):
        self.moments, self.entries = [], []

    def begins(self, moment):
        self.moments.append(moment)

    def ends(self, entry):
        self.entries.append(entry)


def test_the_best_validation_wins_and_of_equals_the_earlier(rows):
    X, labels = rows
    four = [fake("a", 0.6), fake("b", 0.8), fake("c", 0.8), fake("d", float("nan"))]
    board, models = compare_candidates(X, labels, folds_of(labels), seconds=9, candidates=four, chosen_by="folds")
    assert board.winner == "b"
    assert list(models) == [entry.name for entry in board.tried] == ["b", "c", "a", "d"]
    told = board.to_json()
    assert (told["winner"], told["chosen_by"], len(told["entries"])) == ("b", "93 validation rows (folds)", 4)


def test_models_are_compared_by_the_rows_that_all_held_out(rows):
    X, labels = rows
    some = np.arange(0, 93, 2)

    def part_of(part):
        scores = np.full((93, 3), np.nan)
        scores[some] = scores_of(part, 0.6)[some]
        return Trained(DummyClassifier().fit(part.X, part.labels), scores)

    board, _ = compare_candidates(
        X, labels, folds_of(labels), seconds=9, candidates=[fake("whole", 0.9), Candidate("part", part_of)]
    )
    whole = scores_of(Part(X, labels, [], 0, 1.0, print), 0.9)
    expected = mauc_score(labels[some], whole[some])
    assert board.entries[0].validation == pytest.approx(expected)
    assert expected != pytest.approx(mauc_score(labels, whole))
    assert board.chosen_by.startswith(f"{len(some)} validation rows")


def test_time_stops_a_model_between_two_fits_and_leaves_out_what_would_take_too_long(rows):
    X, labels = rows
    now = [0.0]

    def slow(part):
        assert part.seconds == 6.0
        for k in range(5):
            part.step(f"fold {k}")
            now[0] += 4.0

    def late(part):
        assert part.seconds == 0.0
        raise LeftOut.takes(77.7)

    def spend(part):
        part.step("all")
        now[0] += 2.0

    heard = Heard()
    tried = [fake("a", 0.6, spend), fake("b", 0.7, spend), fake("slow", 0.9, slow), fake("late", 0.9, late)]
    board, models = compare_candidates(
        X, labels, folds_of(labels), seconds=10, candidates=tried, watch=heard, clock=lambda: now[0]
    )
    assert list(models) == ["b", "a"]
    assert [entry.left_out for entry in board.left_out] == ["was not ready after 8 s", "would take about 78 s"]
    assert [m.step for m in heard.moments] == ["all", "all", "fold 0", "fold 1"]
    assert [m.seconds_left for m in heard.moments] == [10.0, 8.0, 6.0, 2.0]
    assert [m.best and m.best.name for m in heard.moments] == [None, "a", "b", "b"]
    assert [e.name for e in heard.entries] == ["a", "b", "slow", "late"]
    assert board.seconds == now[0]


def test_the_first_two_are_trained_whatever_the_limit(rows):
    X, labels = rows
    board, models = compare_candidates(X, labels, folds_of(labels), seconds=1e-9)
    assert list(models) == ["logistic regression", "class frequencies"]
    assert [entry.name for entry in board.left_out] == ["linear MAUC model", "stack of models"]


def test_without_validation_rows_there_is_a_model_all_the_same():
    X, labels = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array(["a", "b"])
    board, models = compare_candidates(X, labels, [], seconds=60)
    assert board.winner == "linear MAUC model"
    assert np.isnan(board.tried[0].validation)
    assert "stack of models" not in models
    assert board.left_out[0].left_out == "needs a second training row of two classes"


def small_stack(monkeypatch, names=("lr", "et")):
    """A stack of quick models in place of the one that the size allows."""

    def plan(size, seconds, n_folds, seed):
        models = [(name, model) for name, model in default_estimators(seed, 3) if name in names]
        return StackPlan(tuple(models), size.rows if n_folds > 1 else min(300, size.rows - 1), n_folds, 0.1)

    monkeypatch.setattr(candidates_module, "parts_of_stack", plan)


@pytest.mark.parametrize("n_folds", [3, 1])
def test_validation_is_by_rows_held_out_from_every_choice(n_folds, monkeypatch):
    """With labels drawn by lot, no model may look better than chance: choices that saw the held-out rows would."""
    small_stack(monkeypatch)
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(500, 20)), rng.permutation(np.repeat(["a", "b"], 250))
    heard = Heard()
    board, models = compare_candidates(X, labels, folds_of(labels)[:n_folds], seconds=1000, watch=heard)
    assert [entry.name for entry in board.entries] == [candidate.name for candidate in CANDIDATES]
    assert not board.left_out
    for entry in board.entries:
        assert abs(entry.validation - 0.5) < (0.08 if n_folds > 1 else 0.12), entry
    for name, model in models.items():
        assert model.predict_proba(X).shape == (500, 2), name
    steps = {m.step for m in heard.moments if m.model == "stack of models"}
    assert ("lr, fold 1 of 3" if n_folds > 1 else "lr, validation rows held out") in steps
    stack = models["stack of models"]
    assert (stack.verbose, type(stack.cv)) == (0, int), "no rows and no functions in the model's file"
    assert type(models["linear MAUC model"].cv if n_folds > 1 else 3) is int
    about = next(entry.about for entry in board.entries if entry.name == "stack of models")
    rest = "" if n_folds > 1 else r", 3\d\d of 500 rows"
    assert re.fullmatch(f"MAUCStackingClassifier: exponential, alpha 6; lr, et{rest}", about)


def test_a_class_that_no_fold_knows_is_a_class_of_every_model(rows, monkeypatch):
    small_stack(monkeypatch)
    X, labels = rows
    common = np.flatnonzero(labels != "yew")
    fold = (common[::2], common[1::2])
    _, models = compare_candidates(X, labels, [fold], seconds=1000)
    assert len(models) == 4
    for name, model in models.items():
        assert model.classes_.tolist() == ["elm", "oak", "yew"], name


def test_logistic_regression_is_validated_out_of_fold(rows):
    X, labels = rows
    folds = folds_of(labels)
    part = Part(X, labels, folds, 0, 60.0, lambda _: None)
    trained = CANDIDATES[1].train(part)
    expected = np.zeros((len(labels), 3))
    for train, test in folds:
        model = LogisticRegression(class_weight="balanced", max_iter=1000, random_state=0)
        expected[test] = model.fit(X[train], labels[train]).predict_proba(X[test])
    np.testing.assert_allclose(trained.held_out, expected)
    board, _ = compare_candidates(X, labels, folds, seconds=60, candidates=CANDIDATES[1:2])
    assert board.entries[0].validation == pytest.approx(mauc_score(labels, expected))


def test_what_the_size_allows():
    small = parts_of_stack(Size(160, 9, 6), 60, 5)
    assert (len(small.models), small.n_folds) == (len(BY_VALUE), 5)
    plans = [parts_of_stack(Size(100_000, 20, 5), seconds, 1) for seconds in (500, 30, 15, 6, 1)]
    assert [plan.rows for plan in plans][-1] == 5_000
    assert all(a.rows >= b.rows and len(a.models) >= 3 for a, b in pairwise(plans))
    assert all(plan.seconds <= s for plan, s in zip(plans[:4], (500, 30, 15, 6), strict=True))
    assert plans[-1].seconds > 1, "the smallest may take longer than there is"
    assert not {"et", "rf"} & {name for name, _ in plans[0].models}, "forests of so many rows are too large a file"
    for name in BY_VALUE:
        assert seconds_of(name, Size(20_000, 20, 5)) > seconds_of(name, Size(2_000, 20, 5))
    assert slowness() >= 0.5
