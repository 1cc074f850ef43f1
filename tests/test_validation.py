"""Every refusal names the parameter, the requirement, what came and what to do."""

import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import UndefinedMetricWarning

from mauc import _validation as validation
from mauc.metrics.inference import compare_mauc, mauc_interval
from mauc.metrics.scores import mauc_score, pairwise_auc

Y = np.array(["ant", "bee", "cat"] * 4)
SCORES = np.random.default_rng(0).normal(size=(12, 3))

# name of the parameter that takes the scores → call
SCORE_CALLS = {
    "pairwise_auc y_score": pairwise_auc,
    "mauc_score y_score": mauc_score,
    "mauc_interval y_score": mauc_interval,
    "compare_mauc score_a": lambda y, s, **options: compare_mauc(y, s, SCORES, **options),
    "compare_mauc score_b": lambda y, s, **options: compare_mauc(y, SCORES, s, **options),
}
CALLS = {
    "pairwise_auc": pairwise_auc,
    "mauc_score": mauc_score,
    "mauc_interval": mauc_interval,
    "compare_mauc": lambda y, s, **options: compare_mauc(y, s, s, **options),
}
PAIR_CALLS = {name: call for name, call in CALLS.items() if name != "pairwise_auc"}
LEVEL_CALLS = {name: CALLS[name] for name in ("mauc_interval", "compare_mauc")}


def every_refusal(cases, calls):
    """Each bad input for the first call; the others check by the same functions, which one bad input each shows."""
    (first, *others), one = calls, next(iter(cases))
    table = [*((case, first) for case in cases), *((one, call) for call in others)]
    return pytest.mark.parametrize(("case", "call"), table, ids=[f"{case}-{call}" for case, call in table])


def four_parts(parameter, requirement, came, advice=None):
    parts = [re.escape(part) for part in (parameter, requirement, came)]
    end = "$" if advice is None else ": .*" + re.escape(advice)
    return r"(?s)^{} {}.*, got .*{}.*?".format(*parts) + end


def refused(*parts):
    return pytest.raises(ValueError, match=four_parts(*parts))


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def objects(*values):
    return np.array(values, dtype=object)


BAD_SCORES = {
    "nan": (changed(SCORES, (3, 1), np.nan), "must be finite", "nan at (3, 1) and 1 such", "drop or impute"),
    "inf": (changed(SCORES, (3, 1), np.inf), "must be finite", "inf at (3, 1) and 1 such", "can be clipped"),
    "-inf": (changed(SCORES, (0, 2), -np.inf), "must be finite", "-inf at (0, 2)", "can be clipped"),
    "inf and -inf": (
        changed(SCORES, (slice(0, 2), 0), [np.inf, -np.inf]),
        "must be finite",
        "inf at (0, 0) and 2 such",
        "can be clipped",
    ),
    "float32 nan": (changed(SCORES.astype(np.float32), (3, 1), np.nan), "must be finite", "nan at (3, 1)", "drop or"),
    "None": (changed(SCORES.astype(object), (3, 1), None), "must be finite", "nan at (3, 1)", "drop or impute"),
    "strings": (SCORES.astype(str), "must be an array of real numbers", "<U", "pass numeric scores"),
    "strings as objects": (SCORES.astype(str).astype(object), "must be an array of real numbers", "", "pass numeric"),
    "words as objects": (changed(SCORES.astype(object), (0, 0), "x"), "must be an array of real numbers", "", "pass"),
    "bytes as objects": (
        SCORES.astype("S").astype(object),
        "must be an array of real numbers",
        "object",
        "pass numeric",
    ),
    "masked": (np.ma.masked_less(SCORES, 0), "must not be masked", "masked values", "fill the values in"),
    "whole numbers beyond float64": (
        np.full((12, 3), 2**53 + 1),
        "must hold whole numbers of at most 2**53",
        "9007199254740993",
        "pass ranks",
    ),
    "such numbers as objects": (
        changed(SCORES.astype(object), (3, 1), -(2**70)),
        "must hold whole numbers of at most 2**53",
        "1180591620717411303424",
        "pass ranks",
    ),
    "complex": (SCORES + 0j, "must be an array of real numbers", "complex128", "pass numeric scores"),
    "dates": (SCORES.astype("datetime64[s]"), "must be an array of real numbers", "datetime64", "pass numeric scores"),
    "a dict": ({"ant": SCORES}, "must be an array of real numbers", "dict", "pass numeric scores"),
    "sparse": (csr_array(SCORES), "must be an array of real numbers", "csr", "pass numeric scores"),
    "ragged": ([[1, 2, 3]] * 11 + [[1, 2]], "must be an array of real numbers", "list", "pass numeric scores"),
    "a number": (
        3.0,
        "must have the shape (n_samples, n_classes)",
        "shape ()",
        "one row per sample and one column per class",
    ),
    "nothing": (None, "must have the shape (n_samples, n_classes)", "shape ()", "one row per sample"),
    "three axes": (
        SCORES[None],
        "must have the shape (n_samples, n_classes)",
        "shape (1, 12, 3)",
        "one row per sample",
    ),
    "no rows": (SCORES[:0], "must not be empty", "shape (0, 3)", "pass at least one sample"),
    "no columns": (SCORES[:, :0], "must not be empty", "shape (12, 0)", "pass at least one sample and one class"),
    "an empty list": ([], "must not be empty", "shape (0, 1)", "pass at least one sample and one class"),
    "fewer rows": (SCORES[:11], "must have one row per sample", "11 rows for 12 true classes", "the same samples"),
    "more rows": (np.vstack([SCORES] * 2), "must have one row per sample", "24 rows for 12", "the same samples"),
    "transposed": (SCORES.T, "must have one row per sample", "3 rows for 12 true classes", "the same samples"),
    "one axis": (
        SCORES[:, 0],
        "must have one column per class",
        "1 columns for 3 classes (ant, bee, cat)",
        "pass labels=",
    ),
    "fewer columns": (SCORES[:, :2], "must have one column per class", "2 columns for 3 classes (ant,", "pass labels="),
    "more columns": (
        np.hstack([SCORES] * 2),
        "must have one column per class",
        "6 columns for 3 classes",
        "pass labels=",
    ),
}


@every_refusal(BAD_SCORES, SCORE_CALLS)
def test_scores(case, call):
    scores, *parts = BAD_SCORES[case]
    with refused(call.split()[1], *parts):
        SCORE_CALLS[call](Y, scores)


BAD_Y = {
    "continuous": (
        np.linspace(0, 2, 12),
        "must hold classes",
        "the continuous value 0.1818",
        "not a regression target",
    ),
    "float with nan": ([0.0, 1.0, np.nan] * 4, "must", "nan", "class"),
    "float with inf": ([0.0, 1.0, np.inf] * 4, "must", "inf", "class"),
    "multilabel": (
        np.eye(3, dtype=int)[[0, 1, 2] * 4],
        "must be one class per sample",
        "shape (12, 3)",
        "argmax(axis=1)",
    ),
    "sets of labels": ([["ant"], ["ant", "bee"], []] * 4, "must be one class per sample", "", "multilabel"),
    "a word": ("ant", "must be one class per sample", "shape ()", "multilabel"),
    "nothing": (None, "must be one class per sample", "shape ()", "multilabel"),
    "empty": ([], "must not be empty", "no sample", "pass at least one sample of two classes"),
    "empty integers": (np.empty(0, int), "must not be empty", "no sample", "pass at least one sample of two classes"),
    "None in a list": (["ant", "bee", None] * 4, "must name the class of every sample", "a missing value", "drop"),
    "nan in a list": (["ant", "bee", np.nan] * 4, "must name the class of every sample", "a missing value", "drop"),
    "nan among objects": (objects(*["ant", "bee", np.nan] * 4), "must name the class of", "a missing value", "drop"),
    "NaT": (np.array(["2020", "2021", "NaT"] * 4, dtype="M8[Y]"), "must name the class of", "a missing value", "drop"),
    "mixed objects": (
        objects(*["ant", 1, "cat"] * 4),
        "must hold labels of one kind",
        "mixture of int, str",
        "convert",
    ),
    "dictionaries": ([{"a": 1}, {"b": 1}, {"c": 1}] * 4, "must hold single values such as strings", "a dict"),
    "sets": ([{"ant"}, {"bee"}, {"cat"}] * 4, "must hold single values such as strings", "a set"),
    "masked": (np.ma.masked_equal([0, 1, 2] * 4, 1), "must not be masked", "4 masked values", "drop those samples"),
    "mixed list": (["ant", 1, "cat"] * 4, "must hold labels of one kind", "mixture of int, str", "convert all to str"),
}


@every_refusal(BAD_Y, CALLS)
def test_y_true(case, call):
    y, *parts = BAD_Y[case]
    with refused("y_true", *parts):
        CALLS[call](y, SCORES)


@pytest.mark.parametrize("call", PAIR_CALLS)
class TestOneClass:
    def test_is_refused(self, call):
        with refused("y_true", "must hold two classes or more", "only the class ant", "check the split"):
            PAIR_CALLS[call](["ant"] * 12, SCORES[:, 0])
        with refused("y_true", "must hold every class of labels", "no sample of bee, cat", "pass absent='ignore'"):
            PAIR_CALLS[call](["ant"] * 12, SCORES, labels=["ant", "bee", "cat"])

    def test_many_missing_are_abridged(self, call):
        with refused(
            "y_true", "must hold every class of labels", "no sample of 2, 3, 4, 5, 6, 7, 8, 9", "absent='ignore'"
        ):
            PAIR_CALLS[call]([0, 1] * 6, np.ones((12, 20)), labels=range(20))

    @pytest.mark.parametrize("options", [{}, {"labels": ["ant", "bee"]}], ids=["alone", "labels"])
    def test_ignored_is_nan(self, call, options):
        with pytest.warns(UndefinedMetricWarning, match="multiclass AUC is undefined and returned as NaN"):
            result = PAIR_CALLS[call](["ant"] * 12, SCORES[:, 0], absent="ignore", **options)
        assert np.isnan(result if isinstance(result, float) else list(vars(result).values())).all()


BAD_LABELS = {
    "not covering": (
        ["ant", "bee", "dog"],
        "must name every class of y_true",
        "ant, bee, dog without cat",
        "add the missing",
    ),
    "of another type": (
        [0, 1, 2],
        "must name every class of y_true",
        "0, 1, 2 without ant, bee, cat",
        "add the missing",
    ),
    "twice": (["ant", "bee", "ant"], "must be two or more different classes", "['ant', 'bee', 'ant']", "in order"),
    "one": (["ant"], "must be two or more different classes", "['ant']", "name the columns of y_score"),
    "none": ([], "must be two or more different classes", "[]", "name the columns of y_score"),
    "a word": ("ant", "must be two or more different classes", "'ant'", "name the columns of y_score"),
    "dictionaries": ([{}, {}], "must hold single values such as strings", "a dict"),
    "two axes": ([["ant", "bee", "cat"]], "must be two or more different classes", "[['ant'", "name the columns"),
    "ragged": ([["ant"], ["bee", "cat"]], "must be two or more different classes", "[['ant'", "name the columns"),
}


@every_refusal(BAD_LABELS, CALLS)
def test_labels(case, call):
    labels, *parts = BAD_LABELS[case]
    with refused("labels", *parts):
        CALLS[call](Y, SCORES, labels=labels)


@pytest.mark.parametrize("call", SCORE_CALLS)
def test_columns_that_are_not_the_labels(call):
    parts = "must have one column per class", "3 columns for 4 classes (ant, bee, cat, dog)", "pass labels="
    names = ["ant", "bee", "cat", "dog"]
    if call.endswith("score_b"):
        with refused("score_b", *parts):
            compare_mauc(Y, np.ones((12, 4)), SCORES, labels=names)
    else:
        with refused(call.split()[1], *parts):
            SCORE_CALLS[call](Y, SCORES, labels=names)


def test_long_lists_of_classes_are_abridged():
    with refused(
        "y_score", "must have one column per class", "3 columns for 12 classes (0, 1, 2, 3, 4, 5, 6, 7, …)", "pass"
    ):
        mauc_score(np.arange(12), SCORES)


ONES = np.ones(12)
BAD_WEIGHTS = {
    "nan": (changed(ONES, 5, np.nan), "must be finite", "nan at 5 and 1 such", "drop or impute"),
    "inf": (changed(ONES, 5, np.inf), "must be finite", "inf at 5 and 1 such", "drop or impute"),
    "None": (changed(ONES.astype(object), 5, None), "must be finite", "nan at 5", "drop or impute"),
    "masked": (np.ma.masked_equal(changed(ONES, 5, 2), 2), "must not be masked", "1 masked values", "drop those"),
    "negative": (changed(ONES, 5, -0.5), "must not be negative", "-0.5", "pass weights >= 0"),
    "zero for a class": (
        ONES * (Y != "bee"),
        "must have a positive sum in every class",
        "for class bee",
        "drop the samples",
    ),
    "all zero": (0 * ONES, "must have a positive sum in every class", "for class ant", "drop the samples"),
    "too few": (ONES[:11], "must have the shape (12,)", "shape (11,)", "pass one weight per sample"),
    "two axes": (ONES[:, None], "must have the shape (12,)", "shape (12, 1)", "pass one weight per sample"),
    "a number": (2.0, "must have the shape (12,)", "shape ()", "pass one weight per sample"),
    "words": (["balanced"] * 12, "must be real numbers", "balanced", "pass one number per sample"),
    "numbers in words": (["1"] * 12, "must be real numbers", "'1'", "pass one number per sample"),
    "complex": (ONES + 0j, "must be real numbers", "j", "pass one number per sample"),
    "ragged": ([[1, 2], [3]] * 6, "must be real numbers", "[[1, 2], [3]", "pass one number per sample"),
}


@every_refusal(BAD_WEIGHTS, CALLS)
def test_sample_weight(case, call):
    weight, *parts = BAD_WEIGHTS[case]
    with refused("sample_weight", *parts):
        CALLS[call](Y, SCORES, sample_weight=weight)


def test_class_without_weight_goes_by_its_label():
    # Its number would be the label of another class.
    with refused("sample_weight", "must have a positive sum in every class", "for class 2", "drop the samples"):
        mauc_score([0, 1, 2] * 4, SCORES, labels=[2, 1, 0], sample_weight=[1, 1, 0] * 4)


OFF = 1 - np.eye(3)
MATRIX = "must be 'ovo', 'ova' or a (3, 3) matrix of weights"
BAD_PAIRS = {
    "unknown": ("ovr", "must be one of 'ovo', 'ova'", "'ovr'"),
    "case": ("OVO", "must be one of 'ovo', 'ova'", "'OVO'"),
    "nothing": (None, MATRIX, "None", "weight of the pair (column i, class j)"),
    "too small": (np.ones((2, 2)), MATRIX, "shape (2, 2)", "weight of the pair"),
    "one axis": ([1, 2, 3], MATRIX, "[1, 2, 3] of shape (3,)", "weight of the pair"),
    "negative": (changed(OFF, (0, 1), -2.0), MATRIX, "the negative weight -2", "pass weights >= 0"),
    "nan": (changed(OFF, (0, 1), np.nan), "must be finite", "nan at (0, 1)", ""),
    "inf": (changed(OFF, (0, 1), np.inf), "must be finite", "inf at (0, 1)", ""),
    "zero": (0 * OFF, MATRIX, "no positive weight off the diagonal", "weight of the pair"),
    "diagonal": (np.diag([0.1, 0.2, 0.3]), MATRIX, "no positive weight off the diagonal", "weight of the pair"),
    "words": ([["x"] * 3] * 3, MATRIX, "x", "weight of the pair"),
    "numbers in words": ([["1"] * 3] * 3, MATRIX, "'1'", "weight of the pair"),
    "complex": (OFF + 0j, MATRIX, "j", "weight of the pair"),
    "ragged": ([[0, 1], [1]], MATRIX, "[[0, 1], [1]]", "weight of the pair"),
}


@every_refusal(BAD_PAIRS, PAIR_CALLS)
def test_pairs(case, call):
    pairs, *parts = BAD_PAIRS[case]
    with refused("pairs", *parts):
        PAIR_CALLS[call](Y, SCORES, pairs=pairs)


def test_advice_on_pairs_is_not_on_samples():
    with pytest.raises(ValueError, match=r"^pairs must be finite") as error:
        mauc_score(Y, SCORES, pairs=changed(OFF, (0, 1), np.nan))
    assert "samples" not in str(error.value)


@pytest.mark.parametrize("n_classes", [3, 10, 60])
def test_diagonal_pairs_are_none_whatever_their_rounding(n_classes):
    for seed in range(20):
        diagonal = np.diag(np.random.default_rng(seed).random(n_classes))
        with refused("pairs", "must be 'ovo', 'ova' or a", "no positive weight off the diagonal", "weight of the pair"):
            validation.check_pairs(diagonal, n_classes)
        diagonal[0, 1] = 1e-30
        np.testing.assert_array_equal(validation.check_pairs(diagonal, n_classes), diagonal)


@pytest.mark.parametrize("call", PAIR_CALLS)
@pytest.mark.parametrize("absent", ["drop", None])
def test_absent(absent, call):
    with refused("absent", "must be one of 'raise', 'ignore'", repr(absent)):
        PAIR_CALLS[call](Y, SCORES, absent=absent)


@pytest.mark.parametrize("call", LEVEL_CALLS)
@pytest.mark.parametrize("level", [0, 95, np.nan, "0.95", True])
def test_level(level, call):
    with refused("level", "must be a finite number strictly between 0 and 1", repr(level)):
        LEVEL_CALLS[call](Y, SCORES, level=level)


@pytest.mark.parametrize("level", [np.float32(0.5), np.float64(0.5), Fraction(1, 2), np.float16(0.5)])
def test_level_of_any_real_type(level):
    assert mauc_interval(Y, SCORES, level=level) == mauc_interval(Y, SCORES, level=0.5)


@pytest.mark.parametrize("call", CALLS)
def test_parameters_after_the_star_go_by_name(call):
    with pytest.raises(TypeError, match="positional argument"):
        {"compare_mauc": compare_mauc}.get(call, CALLS[call])(Y, SCORES, *[SCORES] * (call == "compare_mauc"), "ovo")


class TestCodes:
    """``check_codes``, for the risk."""

    @pytest.mark.parametrize("y", [[0, 2, 1], np.array([0, 2, 1], np.uint8), [0.0, 2.0, 1.0], (0, 2, 1)])
    def test_good(self, y):
        codes = validation.check_codes(y, 3, 3)
        assert codes.dtype == np.int64
        assert codes.tolist() == [0, 2, 1]

    @pytest.mark.parametrize(
        ("y", "requirement", "came", "advice"),
        [
            pytest.param([0, 1], "must have the shape (3,)", "shape (2,)", "one class per row", id="too few"),
            pytest.param([[0, 1, 2]], "must have the shape (3,)", "shape (1, 3)", "one class per row", id="two axes"),
            pytest.param([0, 1, 3], "must hold whole numbers from 0 to 2", "0 to 3", "encode", id="too large"),
            pytest.param([-1, 0, 1], "must hold whole numbers from 0 to 2", "-1 to 1", "encode", id="negative"),
            pytest.param([0, 1.5, 2], "must hold whole numbers from 0 to 2", "1.5", "encode", id="continuous"),
            pytest.param([0, np.nan, 2], "must hold whole numbers from 0 to 2", "nan", "encode", id="nan"),
            pytest.param([0, np.inf, 2], "must hold whole numbers from 0 to 2", "inf", "encode", id="inf"),
            pytest.param(list("abc"), "must hold whole numbers from 0 to 2", "<U1 values", "LabelEncoder", id="words"),
            pytest.param([0, None, 2], "must hold whole numbers from 0 to 2", "object values", "encode", id="None"),
        ],
    )
    def test_bad(self, y, requirement, came, advice):
        with refused("y", requirement, came, advice):
            validation.check_codes(y, 3, 3)


class Frame:
    """As little of a data frame as is needed: polars' and others have this too."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    @property
    def shape(self):
        return self.values.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class TestNamedColumns:
    """Columns that are named as the classes go by name, whatever their order."""

    TURNED = (2, 0, 1)

    @pytest.mark.parametrize("call", SCORE_CALLS)
    def test_another_order(self, call):
        turned = Frame(SCORES[:, self.TURNED], ["cat", "ant", "bee"])
        expected = SCORE_CALLS[call](Y, SCORES)
        np.testing.assert_equal(SCORE_CALLS[call](Y, turned), expected)
        np.testing.assert_equal(SCORE_CALLS[call](Y, turned, labels=["ant", "bee", "cat"]), expected)

    def test_labels_give_the_order_of_the_result(self):
        turned = Frame(SCORES[:, self.TURNED], ["cat", "ant", "bee"])
        np.testing.assert_array_equal(
            pairwise_auc(Y, turned, labels=["bee", "cat", "ant"]), pairwise_auc(Y, SCORES)[[1, 2, 0]][:, [1, 2, 0]]
        )

    def test_pandas(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(SCORES, columns=["ant", "bee", "cat"])
        assert mauc_score(Y, frame[["cat", "ant", "bee"]]) == mauc_score(Y, SCORES)
        assert mauc_score(Y, pd.DataFrame(SCORES)) == mauc_score(Y, SCORES)

    @pytest.mark.parametrize("columns", [[3, 1, 2], ["3", "1", "2"], [3.0, 1.0, 2.0], ["3.0", "1.0", "2.0"]])
    @pytest.mark.parametrize("dtype", [int, float, str])
    def test_numbers_as_they_are_written(self, columns, dtype):
        y = np.array([1, 2, 3] * 4).astype(dtype)
        assert mauc_score(y, Frame(SCORES[:, self.TURNED], columns)) == mauc_score(y, SCORES)

    def test_classes_that_differ_only_in_writing(self):
        y = np.array(["1", "1.0", "2"] * 4)
        assert mauc_score(y, Frame(SCORES[:, self.TURNED], ["2", "1", "1.0"])) == mauc_score(y, SCORES)

    @pytest.mark.parametrize("columns", [[0, 1, 2], ["column_0", "column_1", "column_2"], [7, 8, 9]])
    def test_names_that_say_nothing_go_by_position(self, columns):
        assert mauc_score(Y, Frame(SCORES, columns)) == mauc_score(Y, SCORES)
        # pandas numbers columns from 0: that is no name, though 1 and 2 are classes here.
        numbered = Frame(SCORES, [0, 1, 2])
        assert mauc_score([1, 2, 3] * 4, numbered) == mauc_score(Y, SCORES)
        assert mauc_score([0, 1, 2] * 4, numbered, labels=[2, 1, 0]) == mauc_score([2, 1, 0] * 4, SCORES)

    @pytest.mark.parametrize(
        "columns", [["ant", "bee", "dog"], ["ant", "ant", "cat"], ["id", "ant", "bee", "cat"], ["cat", "bee"]]
    )
    @pytest.mark.parametrize("call", SCORE_CALLS)
    def test_some_names_are_refused(self, call, columns):
        frame = Frame(np.ones((12, len(columns))), columns)
        requirement = "must have columns of which all are named as the classes, or none"
        came = f"the columns {', '.join(columns)} for the classes ant, bee, cat"
        with refused(call.split()[1], requirement, came, "arrays go by position"):
            SCORE_CALLS[call](Y, frame)

    @pytest.mark.parametrize(("name", "sign"), [("no", -1), ("yes", 1), ("score", 1), (0, 1), (None, 1)])
    def test_one_column_scores_the_class_that_it_is_named_as(self, name, sign):
        pd = pytest.importorskip("pandas")
        y = np.array(["no", "yes"] * 6)
        expected = mauc_score(y, sign * SCORES[:, 0])
        assert mauc_score(y, pd.Series(SCORES[:, 0], name=name)) == expected
        assert mauc_score(y, Frame(SCORES[:, :1], [name])) == expected


def test_tensors_lose_their_graph():
    torch = pytest.importorskip("torch")
    scores = torch.tensor(SCORES, requires_grad=True)
    weight = torch.arange(1.0, 13.0, requires_grad=True)
    assert mauc_score(Y, scores) == mauc_score(Y, SCORES)
    expected = mauc_score(torch.arange(12) % 3, SCORES, sample_weight=np.arange(1.0, 13.0))
    assert mauc_score(torch.arange(12) % 3, scores, sample_weight=weight) == expected
    with refused("y_score", "must be an array of real numbers", "Tensor of torch.bfloat16", "pass numeric scores"):
        mauc_score(Y, scores.bfloat16())


def test_an_array_without_masked_values_is_an_array():
    assert mauc_score(Y, np.ma.array(SCORES)) == mauc_score(Y, SCORES)


def test_whole_numbers_up_to_the_limit():
    top = np.array([[2**53, -(2**53)], [2**53 - 1, 1 - 2**53]])
    assert mauc_score([0, 1], top) == 1.0


class TestParts:
    def test_message(self):
        error = validation.invalid("alpha", "must be positive", -1, "pass a larger one")
        assert type(error) is ValueError
        assert str(error) == "alpha must be positive, got -1: pass a larger one"
        assert str(validation.invalid("alpha", "must be positive", -1)) == "alpha must be positive, got -1"

    @pytest.mark.parametrize("value", [0, 5, 2.0, True, "3", None, np.float64(3)])
    def test_whole(self, value):
        assert validation.check_whole("k", np.int8(3), least=1, most=4) == 3
        with refused("k", "must be a whole number from 1 to 4", repr(value)):
            validation.check_whole("k", value, least=1, most=4)
        with refused("k", "must be a whole number of at least 6", repr(value), "take more"):
            validation.check_whole("k", value, least=6, advice="take more")

    def test_real(self):
        assert validation.check_real("q", 2, low=1) == 2.0
        assert type(validation.check_real("q", np.float32(2), low=1)) is float
        with refused("q", "must be a finite number above 1", "1"):
            validation.check_real("q", 1, low=1)

    @pytest.mark.parametrize(
        ("options", "good", "bad", "span"),
        [
            ({"low": 0, "closed": "left"}, 0, np.inf, "of at least 0"),
            ({"low": 0, "high": 1, "closed": "left"}, 0, 1, "of at least 0 and below 1"),
            ({"low": 0, "high": 1, "closed": "right"}, 1, 0, "above 0 and at most 1"),
            ({"low": 0, "high": 1}, 0.5, True, "strictly between 0 and 1"),
        ],
    )
    def test_ends(self, options, good, bad, span):
        assert validation.check_real("q", good, **options) == good
        with refused("q", f"must be a finite number {span}", repr(bad)):
            validation.check_real("q", bad, **options)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_scores_are_not_copied(self, dtype):
        scores = SCORES.astype(dtype)
        assert validation.check_scores(scores) is scores

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, object])
    def test_other_numbers_become_float64(self, dtype):
        whole = np.arange(6).reshape(2, 3) % 2
        scores = validation.check_scores(whole.astype(dtype))
        assert scores.dtype == np.float64
        np.testing.assert_array_equal(scores, whole)

    def test_finite_scores_whose_sum_is_not(self):
        big = np.full((4, 2), np.finfo(np.float64).max)
        assert validation.check_scores(big) is big
        assert mauc_score([0, 1, 0, 1], big) == 0.5
        narrow = np.full((4, 2), np.finfo(np.float32).max)
        assert mauc_score([0, 1, 0, 1], narrow) == 0.5

    def test_nothing_is_printed_or_warned_for_good_input(self, recwarn, capsys):
        mauc_score(Y, SCORES)
        assert not recwarn.list
        assert capsys.readouterr() == ("", "")
