"""``fit_table``: the same from Python, on frames and files, within its time."""

import zipfile
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
pytest.importorskip("skops", reason="needs the extra mauc[cli]")

import pandas as pd
from sklearn.base import clone
from sleeper import Breaker

import mauc
from mauc import fit_table, load_model, mauc_score
from mauc._tables.decide import learn_decision
from mauc._tables.model_file import read_model
from mauc._tables.options import Options
from mauc._tables.saved_scores import cell_hashes, read_saved_scores, row_hashes
from mauc._tables.training import Trainer, _choose_calibration, full_name
from mauc.ensemble import MAUCStackingClassifier, default_estimators
from mauc.ensemble.fitting import InProcess, Watch
from mauc.ensemble.planner import Member, StackPlan
from mauc.ensemble.workers import Workers

pytestmark = pytest.mark.filterwarnings("ignore:.* training rows? ")


@pytest.fixture
def planned(monkeypatch):
    """Chooses the members of the stack, which this process trains."""

    def choose(names=("et", "lr"), n_folds=3, **more):
        def plan(size, effort="normal", seed=0, order=None, tree_columns=None):
            models = {**dict(default_estimators(seed, 5)), **more}
            return StackPlan(tuple(Member(name, models[name], size.rows) for name in [*names, *more]), n_folds)

        monkeypatch.setattr("mauc.ensemble.classifier.plan_members", plan)
        monkeypatch.setattr("mauc._tables.fit.Workers", lambda n_workers=None: nullcontext(InProcess()))

    return choose


def mixed(n=240, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(2.0 * code)),
            "soil": np.where(code == 2, "peat", rng.choice(["sand", "loam"], n)),
            "seen": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "note": pd.Categorical(rng.choice(["wet", "dry"], n)),
            "kind": np.array(["oak", "elm", "yew"])[code],
        }
    )


def test_a_frame_of_mixed_columns(planned, tmp_path):
    planned()
    table = mixed()
    fitted = fit_table(table, "kind")
    board = fitted.leaderboard()
    assert list(board.columns) == [
        "model", "validation", "mauc", "low", "high", "difference", "pvalue", "seconds",
    ]  # fmt: skip
    assert {"class frequencies", "logistic regression"} <= set(board["model"])
    assert np.isnan(board["difference"][0])
    new = mixed(90, seed=1).set_index(np.arange(500, 590))
    scores, decided = fitted.predict_proba(new), fitted.predict(new)
    assert list(scores.columns) == ["elm", "oak", "yew"]
    assert scores.index.equals(new.index)
    assert decided.index.equals(new.index)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    ranking = fitted.decision_function(new)
    raw = fitted.model.classifier._ranking_scores(new[["size", "soil", "seen", "note"]])
    assert mauc_score(new["kind"], ranking) == mauc_score(new["kind"], raw), "calibration keeps the ranking"
    np.testing.assert_allclose(ranking.mean(), [0.3, 0.6, 0.1], atol=0.05)
    assert mauc_score(new["kind"], scores) > 0.85
    assert (decided == new["kind"]).mean() > 0.6
    found = fitted.evaluation.judgement
    assert found.headline.balanced_accuracy > 1.5 * found.guess.balanced_accuracy
    assert fitted.report.judgement.headline.mauc.score == board["mauc"][0]
    assert {each.column for each in fitted.importance} == {"size", "soil", "seen", "note"}
    for bad, words in ((np.inf, "inf"), (-1e300, "-1e\\+300"), ([[1]] * 90, "lists")):
        with pytest.warns(
            UserWarning, match=f"'size' of the table holds {words} .first: row 1, 90 in all.: treated as"
        ):
            empty = fitted.predict_proba(new.assign(size=bad))
        np.testing.assert_array_equal(empty, fitted.predict_proba(new.assign(size=np.nan)))
    path = fitted.save(tmp_path / "m.skops")
    assert (tmp_path / "m.scores.npz").exists()
    loaded = read_model(path)
    np.testing.assert_array_equal(loaded.decided(np.asarray(scores)), fitted.model.decided(np.asarray(scores)))


def test_a_file_and_a_frame_give_the_same_model(planned, tmp_path):
    planned()
    table = mixed()
    table.to_csv(tmp_path / "t.csv", index=False)
    one = fit_table(str(tmp_path / "t.csv"), "kind", importance=False)
    two = fit_table(table, "kind", importance=False)
    np.testing.assert_array_equal(one.predict_proba(table), two.predict_proba(table))


def test_columns_of_every_type_give_the_scores_of_their_file(planned, tmp_path):
    planned()
    table = mixed()
    seen = table["seen"] + pd.to_timedelta(np.arange(240), unit="h")
    table["seen"] = seen.dt.tz_localize("UTC").dt.tz_convert("America/Lima")
    table["month"] = seen.dt.to_period("M")
    table["range"] = pd.cut(table["size"], [-2, 0, 1, 3])
    table["damp"] = pd.Series([True, False, None] * 80, dtype=object)
    fitted = fit_table(table, "kind", importance=False)
    loaded = load_model(fitted.save(tmp_path / "m.skops"))
    expected = fitted.predict_proba(table.head(50))
    assert fitted.predict_proba(table.assign(seen=table["seen"].dt.tz_convert("UTC")).head(50)).equals(expected)
    pd.testing.assert_frame_equal(loaded.predict_proba(table.head(1)), expected.head(1))
    table.head(50).to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(loaded.predict_proba(pd.read_csv(tmp_path / "t.csv")), expected)
    for model in (fitted, loaded):
        with pytest.warns(UserWarning, match="column 'soil' of the table holds values that the training") as told:
            model.predict_proba(table.assign(soil="clay"))
        assert len(told) == 1
    made = fit_table(str(tmp_path / "t.csv"), "kind", importance=False)
    again = fit_table(table.head(50), "kind", importance=False)
    pd.testing.assert_frame_equal(made.predict_proba(table), again.predict_proba(table))


def test_the_same_table_and_seed_give_the_same_model_wherever_it_is_trained(planned, monkeypatch):
    """Also beside a member that fails, which is named."""
    names = ("et", "lr", "hgb", "kernel")
    planned(names)
    table = mixed(120)[["size", "soil", "kind"]]
    here = fit_table(table, "kind", importance=False)
    again = fit_table(table, "kind", importance=False, seed=1)
    planned(names, broken=Breaker())
    monkeypatch.setattr("mauc._tables.fit.Workers", lambda n_workers=None: Workers(1))
    there = fit_table(table, "kind", importance=False, time_limit=600)
    assert (here.cut, there.cut) == ((), ("broken failed: no room",))
    assert "broken failed: no room" in dict(there.details())["cut"]
    assert set(there.leaderboard()["model"]) == set(here.leaderboard()["model"])
    np.testing.assert_array_equal(here.predict_proba(table), there.predict_proba(table))
    assert not np.array_equal(here.predict_proba(table), again.predict_proba(table))


def test_an_offset_changes_nothing(planned):
    planned(names=("et", "lr", "hgb"))
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    x = rng.normal(0, 0.3, 300) + y
    near, far = (
        fit_table(pd.DataFrame({"x": x + by, "y": y}), "y", importance=False).leaderboard().set_index("model")["mauc"]
        for by in (0.0, 1e9)
    )
    assert far.to_numpy() == pytest.approx(near[far.index].to_numpy(), abs=5e-3)
    assert far.iloc[0] > 0.98


def test_a_wide_table_loads(planned, tmp_path):
    planned()
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    wide = pd.DataFrame(rng.normal(size=(200, 800))).add_prefix("c").assign(kind=y)
    wide.iloc[:, :20] += y[:, None]
    fitted = fit_table(wide, "kind", importance=False)
    path = fitted.save(tmp_path / "wide.skops")
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("schema.json").file_size < 8e5, "no object for each column"
    loaded = read_model(path)
    np.testing.assert_array_equal(loaded.scores(wide.drop(columns="kind")), fitted.decision_function(wide))


@pytest.mark.slow
def test_thousands_of_classes_within_five_seconds_give_a_model():
    rng = np.random.default_rng(0)
    price = np.repeat(np.arange(4_000), 5)
    table = pd.DataFrame({f"v{k}": price * rng.normal(1, 0.2, len(price)) for k in range(6)})
    fitted = fit_table(table.assign(price=price), "price", time_limit=5.0, importance=False)
    assert fitted.predict_proba(table.head(3)).shape == (3, 4_000)
    assert np.isfinite(fitted.leaderboard()["mauc"]).all()


@pytest.mark.parametrize(
    ("given", "effort", "limit"),
    [
        ((None, None, None), "normal", 60.0),
        (("best", None, None), "best", 600.0),
        ((None, 39.0, None), "quick", 39.0),
        (("normal", 39.0, None), "normal", 39.0),
        ((None, 60.0, 3), "quick", 60.0),
        ((None, 600.0, 5), "normal", 600.0),
    ],
)
def test_effort_and_time_limit_follow_from_each_other(given, effort, limit):
    assert Options.defaults(*given) == {"effort": effort, "time_limit": limit}


def test_a_few_seconds_encode_texts_by_their_order(tmp_path):
    """Character n-grams of long texts take seconds, and no child process can be ended before it has started."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 12_000)
    table = pd.DataFrame(
        {
            "text": [f"{'abc'[k]} {rng.integers(10**9)} " + "word " * 50 for k in code],
            "day": pd.date_range("2000-01-01", periods=12_000, freq="h").astype(str),
            "kind": np.array(["elm", "fir", "oak"])[code],
        }
    )
    fitted = fit_table(table, "kind", time_limit=5.0, importance=False)
    assert "texts and dates are replaced by their places in the alphabet: there is no time to encode them" in fitted.cut
    assert fitted.cut_text.endswith(
        "A faster machine may choose another model; with 10 seconds or more, the stack is trained."
    )
    in_a_minute = replace(fitted, options=replace(fitted.options, time_limit=60.0))
    assert in_a_minute.cut_text.endswith("A faster machine, or a longer time limit, may choose another model.")
    assert fitted.leaderboard()["mauc"].iloc[0] > 0.9
    scores = fitted.decision_function(table.head(50))
    path = fitted.save(tmp_path / "m.skops")
    np.testing.assert_array_equal(read_model(path).scores(table.drop(columns="kind").head(50)), scores)
    few = [text for text in fitted.cut if text.startswith("the time limit allows")]
    assert [text.split()[4] for text in few] == ["4,999", "2,499"]
    saved = read_saved_scores(path)
    assert (saved.n_rows, len(saved.rows), saved.columns) == (12_000, 2_499, {})
    np.testing.assert_array_equal(saved.labels, table["kind"].iloc[saved.rows])
    with pytest.raises(ValueError, match="time_limit 5 allows only one fit, but cv needs several"):
        fit_table(table, "kind", time_limit=5.0, cv=3)


@pytest.mark.parametrize(("sizes", "n_enough"), [((2, 2), 0), ((9, 2), 1)])
def test_validation_needs_two_classes_of_two_training_rows(planned, sizes, n_enough):
    planned()
    kinds = np.repeat(["oak", "elm"], sizes)
    table = pd.DataFrame({"size": np.arange(float(len(kinds))) % 5, "kind": kinds})
    words = (
        "at least two classes of target 'kind' need two training rows each, "
        f"got {n_enough} such classes: add rows to each class"
    )
    with pytest.raises(ValueError, match=f"^{words}$"):
        fit_table(table, "kind")


def test_one_model_has_one_validation_score(planned, monkeypatch):
    """The line that tells of its training, and its row in the leaderboard."""
    told = {}
    monkeypatch.setattr(Watch, "ends", lambda self, name, score, seconds: told.update({full_name(name): score}))
    planned(("et",))
    table = mixed()[["kind"]].assign(same=1)  # scores of one fold are tied, and rounding may break ties
    board = fit_table(table, "kind", importance=False).leaderboard()
    assert {board["model"][0]: board["validation"][0]} == told


def test_pandas_is_needed_for_fit_table_alone():
    assert "fit_table" in dir(mauc)
    with pytest.raises(ValueError, match=r"^effort must be quick, normal or best, got 'all'"):
        fit_table(mixed(), "kind", effort="all")


@pytest.mark.parametrize("expected", [True, "normalized"])
def test_scores_are_divided_by_their_sum_only_if_this_ranks_better(monkeypatch, expected):
    """The first column is noise, which a division spreads to the others; or all columns share a factor."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 300)
    scores = np.clip(0.3 + 0.2 * np.eye(3)[y] + 0.1 * rng.normal(size=(900, 3)), 0.05, 0.95)
    if expected == "normalized":
        scores *= rng.uniform(0.3, 1.0, (900, 1))
    else:
        scores[:, 0] = rng.uniform(0.0, 1.0, 900)
    stack = MAUCStackingClassifier(calibrate=True)
    stack.classes_ = np.arange(3)
    monkeypatch.setattr(stack, "_probabilities", lambda scores: scores)
    _choose_calibration(stack, scores, y)
    assert stack.calibrate == expected


def test_costs_of_a_class_that_is_not_in_the_training_rows(planned, tmp_path):
    planned()
    table = mixed(150)[["size", "soil", "kind"]].assign(day=range(150))
    table.loc[148:, "kind"] = "fir"
    kinds = ["elm", "fir", "oak", "yew"]
    pd.DataFrame(1 - np.eye(4), kinds, kinds).to_csv(tmp_path / "costs.csv")
    decide = str(tmp_path / "costs.csv")
    fitted = fit_table(table, "kind", time_column="day", decide=decide, importance=False)
    assert set(fitted.predict(table)) <= {"elm", "oak", "yew"}


def test_whole_numbers_that_are_measurements_are_refused():
    rng = np.random.default_rng(0)
    price = 10 * rng.integers(100, 900, 300)
    with pytest.raises(ValueError, match="holds measurements such as"):
        fit_table(mixed(300).assign(price=price), "price")
    many = mixed(12_000).assign(kind=[f"k{i % 6_000}" for i in range(12_000)])
    with pytest.raises(ValueError, match="target 'kind' has 6,000 classes, and mauc fit takes at most 5,000"):
        fit_table(many, "kind")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cv": 1}, "^cv must be a whole number of at least 2, got 1$"),
        ({"cv": "x"}, "^cv must be a whole number of at least 2, got 'x'$"),
        ({"cv": 1000}, "^cv must be at most 240, the number of rows to test on, got 1,000: use fewer folds$"),
        ({"min_rows": 0}, "^min_rows must be a whole number of at least 1, got 0$"),
        ({"min_rows": 1.5}, "^min_rows must be a whole number of at least 1, got 1.5$"),
        ({"group": 1.5}, "^group must name a column"),
        ({"time_limit": 0}, "^time_limit must be a finite number above 0, got 0$"),
        ({"time_limit": "1"}, "^time_limit must be a finite number above 0, got '1'$"),
        ({"seed": 1.5}, "^seed must be a whole number of at least 0, got 1.5$"),
        ({"holdout": "a"}, "^holdout must be a finite number strictly between 0 and 1, got 'a'$"),
        ({"refit": "x"}, "^refit must be True or False, got 'x'$"),
        ({"drop_unlabelled": None}, "^drop_unlabelled must be True or False, got None$"),
        ({"decide": None}, "^decide must be balanced, accuracy or a table of costs such as costs.csv, got None$"),
    ],
)
def test_wrong_parameters(options, words):
    with pytest.raises(ValueError, match=words):
        fit_table(mixed(), "kind", **options)


def test_cross_validation(planned):
    planned()
    table = mixed(150)[["size", "soil", "kind"]]
    crossed = fit_table(table, "kind", cv=3, importance=False)
    assert len(crossed.evaluation.rows) == 150
    assert crossed.how == "3-fold cross-validation"
    assert (crossed.evaluation.final.n_rows, crossed.fitted_on) == (150, "")
    board = crossed.leaderboard().set_index("model")
    assert board.loc["class frequencies", "mauc"] == 0.5


def test_the_scores_of_all_folds_are_divided_by_their_sum_or_none(planned, monkeypatch):
    planned()
    choices = iter(["normalized", True, True, True])
    monkeypatch.setattr(
        "mauc._tables.training._choose_calibration", lambda stack, *_: stack.set_params(calibrate=next(choices))
    )
    crossed = fit_table(mixed(150)[["size", "soil", "kind"]], "kind", cv=3, importance=False)
    np.testing.assert_allclose(crossed.evaluation.scores.sum(axis=1), 1.0)
    assert crossed.model.classifier.calibrate == "normalized", "the model is the one that was tested"


def test_after_the_test_the_models_are_fitted_again_on_all_rows(planned):
    planned(("et", "lr"))
    table = mixed(150)[["size", "soil", "kind"]]
    tested, fitted = (fit_table(table, "kind", refit=refit, importance=False) for refit in (False, True))
    np.testing.assert_array_equal(tested.evaluation.scores, fitted.evaluation.scores)
    assert (tested.fitted_on, fitted.fitted_on) == ("", "fitted again on all 150 rows after the test")
    assert dict(fitted.details())["model file"] == fitted.fitted_on
    before, after = tested.model.classifier, fitted.model.classifier
    assert (before.weights_, list(after.named_estimators_)) == (after.weights_, list(before.named_estimators_))
    features = table.drop(columns="kind")
    numbers = before.columns_.transform(features)
    codes = np.searchsorted(before.classes_, table["kind"])
    for name, model in after.named_estimators_.items():
        again = clone(dict(default_estimators(0, 5))[name]).fit(numbers, codes)
        np.testing.assert_array_equal(model.predict_proba(numbers), again.predict_proba(numbers))
    probe = fitted.evaluation.probe.classifier
    np.testing.assert_array_equal(probe.predict_proba(features), before.predict_proba(features))
    assert len(tested.model.trained) < len(fitted.model.trained)


def test_a_model_without_time_for_all_rows_stays_as_it_was_tested(planned, monkeypatch):
    planned(("et", "lr"))
    table = mixed(150)[["size", "soil", "kind"]]
    tested = fit_table(table, "kind", refit=False, importance=False)
    again = Trainer.fit_again
    monkeypatch.setattr(Trainer, "fit_again", lambda self, trained, deadline: again(self, trained, 0.0))
    late = fit_table(table, "kind", importance=False)
    assert late.cut == ("extra trees, logistic regression were not ready in time with all rows: kept as it was tested",)
    assert late.fitted_on == ""
    np.testing.assert_array_equal(late.predict_proba(table), tested.predict_proba(table))
    assert len(late.model.trained) == len(tested.model.trained)


def test_control_c_after_training_keeps_the_model(planned, monkeypatch):
    planned(("et", "lr"))
    runner = InProcess()
    monkeypatch.setattr("mauc._tables.fit.Workers", lambda n_workers=None: nullcontext(runner))

    def interrupted(*arguments, watch, **options):
        runner.stopped = True
        watch("size")

    monkeypatch.setattr("mauc._tables.fit.importance_within", interrupted)
    fitted = fit_table(mixed(150)[["size", "soil", "kind"]], "kind")
    assert fitted.cut == ()
    assert fitted.importance_note == (
        "permutation importance was not computed after Ctrl-C; columns were not checked for leaks after training"
    )


def test_control_c_in_a_cross_validation_keeps_the_folds_that_are_ready(planned, monkeypatch):
    planned(("et", "lr"))
    runner = InProcess()
    monkeypatch.setattr("mauc._tables.fit.Workers", lambda n_workers=None: nullcontext(runner))
    train, trained = Trainer.train, []

    def train_two(self, *arguments):
        trained.append(train(self, *arguments))
        if len(trained) == 2:
            runner.stopped = True
        return trained[-1]

    monkeypatch.setattr(Trainer, "train", train_two)
    fitted = fit_table(mixed(150)[["size", "soil", "kind"]], "kind", cv=3)
    assert fitted.cut == ("Ctrl-C left 1 of 3 folds, and the model of fold 1 as the result",)
    assert fitted.cut_text.endswith("Without Ctrl-C, all models are trained.")
    assert fitted.model.classifier is trained[0].classifier
    assert len(fitted.evaluation.rows) == 50
    assert sum(fitted.training_rows.values()) == 100
    assert fitted.importance_note.startswith("permutation importance was not computed after Ctrl-C")


def test_a_class_without_training_rows_is_left_out(planned):
    planned()
    table = mixed(150)[["size", "soil", "kind"]].assign(day=range(150))
    table.loc[148:, "kind"] = "fir"
    fitted = fit_table(table, "kind", time_column="day", importance=False)
    assert list(fitted.predict_proba(table).columns) == ["elm", "oak", "yew"]
    assert fitted.fitted_on == "fitted again on all 148 rows after the test"


def test_empty_columns_alone(planned):
    planned()
    with pytest.raises(ValueError, match="no column besides 'kind' that holds a value"):
        fit_table(mixed().assign(size=np.nan)[["size", "kind"]], "kind")


def test_frames_that_are_no_tables_are_refused_in_training_and_prediction(planned):
    planned()
    table = mixed(150)[["size", "soil", "kind"]]
    fitted = fit_table(table, "kind", importance=False)
    for use in (fitted.predict_proba, lambda rows: fit_table(rows, "kind")):
        with pytest.raises(ValueError, match="table must be a data frame, got ndarray: pass"):
            use(table.to_numpy())
        with pytest.raises(ValueError, match="the table has two columns named 'size': rename one"):
            use(table[["size", "size", "soil", "kind"]])
        with pytest.raises(ValueError, match="the table has no rows"):
            use(table.head(0))


def test_frames_of_other_libraries(planned):
    planned()

    class Frame:  # as polars.DataFrame and pyarrow.Table
        def __init__(self, table):
            self.table = table

        def to_pandas(self):
            return self.table

    table = mixed(150)[["size", "soil", "kind"]]
    fitted = fit_table(Frame(table), "kind", importance=False)
    pd.testing.assert_frame_equal(fitted.predict_proba(Frame(table)), fitted.predict_proba(table))
    assert fitted.predict(Frame(table)).equals(fitted.predict(table))


def test_codes_that_pandas_reads_as_floats(planned):
    planned()
    table = mixed()[["soil", "kind"]]
    table["soil"] = table["soil"].map({"peat": "1", "sand": "2", "loam": "x"})
    fitted = fit_table(table, "kind", importance=False)
    rows = pd.DataFrame({"soil": ["1", "2", None]})
    expected = fitted.predict_proba(rows)
    pd.testing.assert_frame_equal(fitted.predict_proba(rows.astype("float64")), expected)
    assert fitted.predict_proba(pd.DataFrame({"soil": [1.5, 1e300]})).notna().all(axis=None)


def test_only_rows_that_occur_once_are_recognised_as_training_rows(planned, tmp_path):
    """Two cases may have the same values: a new row with values of a training row need not be that row."""
    planned()
    table = mixed(150)[["size", "soil", "kind"]]
    table.loc[:9, "size"] = 0.25
    table.loc[:9, "soil"] = "sand"
    fitted = fit_table(table, "kind", importance=False)
    known = row_hashes(cell_hashes(table[list(fitted.model.kinds)]))
    assert np.isin(known, fitted.model.trained)[:10].sum() == 0
    assert np.isin(known, fitted.model.trained).mean() > 0.7
    coded = fit_table(table[["soil", "kind"]], "kind", importance=False)
    assert len(load_model(coded.save(tmp_path / "model.skops")).trained) == 0


def test_a_decision_that_takes_too_long_is_left_to_the_probabilities(planned, monkeypatch):
    planned()

    class Late(InProcess):
        def run(self, tasks, deadline, shared=None):
            return iter(()) if tasks and tasks[0].func is learn_decision else super().run(tasks, deadline, shared)

    monkeypatch.setattr("mauc._tables.fit.Workers", lambda n_workers=None: nullcontext(Late()))
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(24), 12)
    table = pd.DataFrame({"x": code + rng.normal(size=288), "z": rng.normal(size=288), "kind": [f"k{c}" for c in code]})
    fitted = fit_table(table, "kind", importance=False)
    assert fitted.cut == (
        "the choice of predicted classes was not ready in time: a rule from the probabilities alone decides",
    )
    assert fitted.predict(table).nunique() > 12


def test_duplicates_in_all_folds_are_counted(planned):
    planned()
    table = mixed(200)[["size", "soil", "kind"]].assign(size=np.arange(200) / 7)
    table = pd.concat([table, table.head(100)], ignore_index=True)
    with pytest.warns(UserWarning, match="test rows duplicate training rows"):
        fitted = fit_table(table, "kind", cv=3, importance=False)
    (flag,) = [each for each in fitted.flags if each.kind == "rows"]
    assert 100 < int(flag.text.split()[0]) <= 200


@pytest.mark.parametrize(("classes", "kind"), [([3, 10, 7], "i"), ([1.0, 2.0, 3.0], "f"), ([True, False], "b")])
def test_predictions_have_the_type_of_the_target(planned, tmp_path, classes, kind):
    planned()
    table = mixed()
    table["kind"] = np.array(classes)[np.unique(table["kind"], return_inverse=True)[1] % len(classes)]
    fitted = fit_table(table, "kind", importance=False)
    loaded = load_model(fitted.save(tmp_path / "model.skops"))
    for model in (fitted, loaded):
        found = model.predict(table)
        assert found.dtype.kind == kind
        assert (found == table["kind"]).mean() > 0.5
        assert model.predict_proba(table).columns.tolist() == sorted(classes)
    pd.testing.assert_frame_equal(loaded.predict_proba(table), fitted.predict_proba(table))


def test_the_text_of_a_model_is_one_line(planned):
    planned()
    fitted = fit_table(mixed(), "kind", importance=False)
    assert repr(fitted).startswith("<FittedTable of 'kind': MAUCStackingClassifier")
    assert "test MAUC 0." in repr(fitted)
    assert repr(fitted.model).endswith("; 3 classes, 4 columns>")


def test_errors_and_flags_are_in_the_words_of_python(planned, tmp_path):
    planned()
    table = mixed()
    with pytest.raises(ValueError, match=r"^target 'kin' is not a column of the table"):
        fit_table(table, "kin")
    with pytest.raises(ValueError, match=r"^drop 'colour' is not a column of the table"):
        fit_table(table, "kind", drop="colour")
    (tmp_path / "no.skops").write_text("x")
    with pytest.raises(ValueError, match="damaged or not a mauc model"):
        load_model(tmp_path / "no.skops")
    table["answer"] = table["kind"].map({"oak": 1.0, "elm": 2.0, "yew": 3.0})
    with pytest.warns(UserWarning, match="column 'answer'") as told:
        fitted = fit_table(table, "kind", importance=False)
    assert len(told) == len(fitted.flags)
    assert not any("--" in str(warning.message) for warning in told)


def test_texts_in_a_message_are_not_taken_for_options(planned, tmp_path):
    planned()
    with pytest.raises(ValueError, match=r"File not found: old--drop\.csv"):
        fit_table("old--drop.csv", "kind")
    table = mixed().rename(columns={"size": "--size"})
    with pytest.raises(ValueError, match=r"^target '--siz' is not a column of the table.*--size"):
        fit_table(table, "--siz")
    for wrong in (None, ["kind"]):
        with pytest.raises(ValueError, match=r"^target must name a column, got"):
            fit_table(mixed(), wrong)


def test_columns_that_are_numbers_and_classes_among_missing_cells(planned):
    planned()
    table = mixed()
    table["soil"] = pd.Categorical([1, 2, None, 1, 2] * 48)
    table["kind"] = pd.Series([True, False, None, True] * 60, dtype=object)
    table.columns = [0, 1, 2, 3, 4]
    with pytest.warns(UserWarning, match="60 rows of the table without a class in '4' are left out"):
        fitted = fit_table(table, 4, drop=[2], drop_unlabelled=True, importance=False)
    assert set(fitted.predict(table)) <= {True, False}
    assert "2" not in fitted.model.kinds


def test_names_that_hold_an_option_come_back_as_they_are(planned):
    planned()
    table = mixed().rename(columns={"size": "my --drop col", "kind": "use --group and --target"})
    with pytest.raises(ValueError, match=r"^drop 'my --drop co' is not .*; did you mean 'my --drop col'\?"):
        fit_table(table, "use --group and --target", drop="my --drop co")
    table["my --drop col"] = table["use --group and --target"].map({"oak": 1.0, "elm": 2.0, "yew": 3.0})
    with pytest.warns(UserWarning, match="column 'my --drop col' .* predicts 'use --group and --target' almost"):
        fit_table(table, "use --group and --target", importance=False)
