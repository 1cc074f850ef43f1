"""Every refusal names the parameter, the requirement, what came and what to do."""

import re
from decimal import Decimal
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

SCORE_CALLS = {
    "y_score": [pairwise_auc, mauc_score, mauc_interval],
    "score_a": [lambda y, s, **options: compare_mauc(y, s, SCORES, **options)],
    "score_b": [lambda y, s, **options: compare_mauc(y, SCORES, s, **options)],
}
CALLS = [pairwise_auc, mauc_score, mauc_interval, lambda y, s, **options: compare_mauc(y, s, s, **options)]
PAIR_CALLS = CALLS[1:]


def refused(parameter, requirement, came, advice=None):
    """Expect an error in four parts, or in three without advice."""
    parts = [re.escape(part) for part in (parameter, requirement, came)]
    end = "$" if advice is None else ": .*" + re.escape(advice)
    return pytest.raises(ValueError, match=r"(?s)^{} {}.*, got .*{}.*?".format(*parts) + end)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def objects(*values):
    return np.array(values, dtype=object)


LONG = Decimal("0.1234567890123456789")
ONES, OFF = np.ones(12), 1 - np.eye(3)
REAL, SHAPE = "must be an array of real numbers", "must have the shape (n_samples, n_classes)"
MATRIX, OF_PAIR = "must be 'ovo', 'ova', 'ovr' or a (3, 3) matrix of weights", "weight of the pair"
EXACT = "must hold numbers that float64 tells apart: whole ones of at most 2**53, decimals of 15 digits"
ONE_CLASS, NAMED = "must be one class per sample", "must name the class of every sample"
DIFFERENT = "must be two or more different classes"

# parameter: {case: (value, requirement, what came, advice)}
TABLE = {
    "y_score": {
        "nan": (changed(SCORES, (3, 1), np.nan), "must be finite", "nan at (3, 1) and 1 such", "drop or impute"),
        "inf": (changed(SCORES, (slice(0, 2), 0), [np.inf, -np.inf]), "must be finite", "inf at (0, 0) and 2 such", ""),
        "float32": (changed(SCORES.astype(np.float32), (3, 1), np.nan), "must be finite", "nan at (3, 1)", "drop or"),
        "None": (changed(SCORES.astype(object), (3, 1), None), "must be finite", "nan at (3, 1)", "drop or impute"),
        "strings": (SCORES.astype(str), REAL, "<U", "pass numeric scores"),
        "bytes as objects": (SCORES.astype("S").astype(object), REAL, "object", "pass numeric scores"),
        "a word as an object": (changed(SCORES.astype(object), (0, 0), "x"), REAL, "object", "pass numeric scores"),
        "complex": (SCORES + 0j, REAL, "complex128", "pass numeric scores"),
        "dates": (SCORES.astype("datetime64[s]"), REAL, "datetime64", "pass numeric scores"),
        "a dict": ({"ant": SCORES}, REAL, "dict", "pass numeric scores"),
        "sparse": (csr_array(SCORES), REAL, "csr", "pass numeric scores"),
        "ragged": ([[1, 2, 3]] * 11 + [[1, 2]], REAL, "list", "pass numeric scores"),
        "masked": (np.ma.masked_less(SCORES, 0), "must not be masked", "masked values", "fill the values in"),
        "large integers": (np.full((12, 3), 2**53 + 1), EXACT, "9007199254740993", "pass ranks"),
        "large objects": (changed(SCORES.astype(object), (3, 1), -(2**70)), EXACT, "1180591620717411303", "pass ranks"),
        "huge objects": (changed(SCORES.astype(object), (3, 1), 10**400), REAL, "object", "pass numeric scores"),
        "a list of large integers": (
            [*SCORES.tolist()[:11], [2**60 + 1, 0.5, 0]],
            EXACT,
            "1152921504606846977",
            "pass",
        ),
        "a long double": (SCORES / np.longdouble(3), EXACT, "0.0419", "pass ranks"),
        "decimals": (changed(SCORES.astype(object), (3, 1), LONG), EXACT, "0.1234567890123456789", "pass ranks"),
        "fractions": (changed(SCORES.astype(object), (3, 1), Fraction(1, 3)), EXACT, "1/3", "pass ranks"),
        "nothing": (None, SHAPE, "shape ()", "one row per sample and one column per class"),
        "three axes": (SCORES[None], SHAPE, "shape (1, 12, 3)", "one row per sample"),
        "no rows": (SCORES[:0], "must not be empty", "shape (0, 3)", "pass at least one sample and one class"),
        "an empty list": ([], "must not be empty", "shape (0, 1)", "pass at least one sample and one class"),
        "transposed": (SCORES.T, "must have one row per sample", "3 rows for 12 true classes", "the same samples"),
        "one axis": (
            SCORES[:, 0],
            "must have one column per class",
            "1 columns for 3 classes (ant, bee, cat)",
            "labels=",
        ),
        "more columns": (
            np.hstack([SCORES] * 2),
            "must have one column per class",
            "6 columns for 3 classes",
            "labels=",
        ),
    },
    "y_true": {
        "continuous": (np.linspace(0, 2, 12), "must hold classes", "the continuous value 0.1818", "not a regression"),
        "float with nan": ([0.0, 1.0, np.nan] * 4, "must", "nan", "class"),
        "one-hot": (np.eye(3, dtype=int)[[0, 1, 2] * 4], ONE_CLASS, "shape (12, 3)", "argmax(axis=1)"),
        "ragged": ([["ant"], ["ant", "bee"], []] * 4, ONE_CLASS, "", "multilabel"),
        "a word": ("ant", ONE_CLASS, "shape ()", "multilabel"),
        "empty": ([], "must not be empty", "no sample", "pass at least one sample of two classes"),
        "None in a list": (["ant", "bee", None] * 4, NAMED, "a missing value", "drop"),
        "nan in a list": (["ant", "bee", np.nan] * 4, NAMED, "a missing value", "drop"),
        "nan among objects": (objects(*["ant", "bee", np.nan] * 4), NAMED, "a missing value", "drop"),
        "NaT": (np.array(["2020", "2021", "NaT"] * 4, dtype="M8[Y]"), NAMED, "a missing value", "drop"),
        "mixed": (["ant", 1, "cat"] * 4, "must hold labels of one kind", "mixture of int, str", "convert all to str"),
        "dictionaries": ([{"a": 1}, {"b": 1}, {"c": 1}] * 4, "must hold single values such as strings", "a dict", None),
        "masked": (np.ma.masked_equal([0, 1, 2] * 4, 1), "must not be masked", "4 masked values", "drop those samples"),
    },
    "labels": {
        "not covering": (["ant", "bee", "dog"], "must name every class of y_true", "ant, bee, dog without cat", "add"),
        "of another type": ([0, 1, 2], "must name every class of y_true", "0, 1, 2 without ant, bee, cat", "add them"),
        "twice": (["ant", "bee", "ant"], DIFFERENT, "['ant', 'bee', 'ant']", "in order"),
        "one": (["ant"], DIFFERENT, "['ant']", "name the columns of y_score"),
        "a word": ("ant", DIFFERENT, "'ant'", "name the columns of y_score"),
        "ragged": ([["ant"], ["bee", "cat"]], DIFFERENT, "[['ant'", "name the columns"),
        "dictionaries": ([{}, {}], "must hold single values such as strings", "a dict", None),
    },
    "sample_weight": {
        "nan": (changed(ONES, 5, np.nan), "must be finite", "nan at 5 and 1 such", "drop or impute"),
        "masked": (np.ma.masked_equal(changed(ONES, 5, 2), 2), "must not be masked", "1 masked values", "drop those"),
        "negative": (changed(ONES, 5, -0.5), "must not be negative", "-0.5", "pass weights >= 0"),
        "zero for a class": (
            ONES * (Y != "bee"),
            "must have a positive sum in every class",
            "for class bee",
            "drop the",
        ),
        "too few": (ONES[:11], "must have the shape (12,)", "shape (11,)", "pass one weight per sample"),
        "two axes": (ONES[:, None], "must have the shape (12,)", "shape (12, 1)", "pass one weight per sample"),
        "words": (["1"] * 12, "must be real numbers", "'1'", "pass one number per sample"),
    },
    "pairs": {
        "unknown": ("OVO", "must be one of 'ovo', 'ova'", "'OVO'", None),
        "nothing": (None, MATRIX, "None", "weight of the pair (column i, class j)"),
        "too small": (np.ones((2, 2)), MATRIX, "shape (2, 2)", OF_PAIR),
        "negative": (changed(OFF, (0, 1), -2.0), MATRIX, "the negative weight -2", "pass weights >= 0"),
        "nan": (changed(OFF, (0, 1), np.nan), "must be finite", "nan at (0, 1)", OF_PAIR),
        "diagonal": (np.diag([0.1, 0.2, 0.3]), MATRIX, "no positive weight off the diagonal", OF_PAIR),
        "words": ([["1"] * 3] * 3, MATRIX, "'1'", OF_PAIR),
        "ragged": ([[0, 1], [1]], MATRIX, "[[0, 1], [1]]", OF_PAIR),
    },
    "absent": {
        "unknown": ("drop", "must be one of 'raise', 'ignore'", "'drop'", None),
        "nothing": (None, "must be one of 'raise', 'ignore'", "None", None),
    },
}


@pytest.mark.parametrize(
    ("parameter", "case"), [pytest.param(p, c, id=f"{p}: {c}") for p, cases in TABLE.items() for c in cases]
)
def test_refusals(parameter, case):
    value, *parts = TABLE[parameter][case]
    with refused(parameter, *parts):
        mauc_score(**{"y_true": Y, "y_score": SCORES, parameter: value})


@pytest.mark.parametrize("parameter", TABLE)
def test_other_functions_refuse_the_same(parameter):
    """One case for each function: they share the checks."""
    value, *parts = next(iter(TABLE[parameter].values()))
    if parameter == "y_score":
        for name, calls in SCORE_CALLS.items():
            for call in calls:
                with refused(name, *parts):
                    call(Y, value)
        return
    for call in PAIR_CALLS if parameter in ("pairs", "absent") else CALLS:
        with refused(parameter, *parts):
            call(*((value, SCORES) if parameter == "y_true" else (Y, SCORES)), **_option(parameter, value))


def _option(parameter, value):
    return {} if parameter == "y_true" else {parameter: value}


@pytest.mark.parametrize("call", PAIR_CALLS)
class TestOneClass:
    def test_is_refused(self, call):
        with refused("y_true", "must hold two classes or more", "only the class ant", "check the split"):
            call(["ant"] * 12, SCORES[:, 0])
        with refused("y_true", "must hold every class of labels", "no sample of 2, 3, 4, 5, 6, 7, 8, 9", "'ignore'"):
            call([0, 1] * 6, np.ones((12, 20)), labels=range(20))

    @pytest.mark.parametrize("options", [{}, {"labels": ["ant", "bee"]}], ids=["alone", "labels"])
    def test_ignored_is_nan(self, call, options):
        with pytest.warns(UndefinedMetricWarning, match="multiclass AUC is undefined and returned as NaN"):
            result = call(["ant"] * 12, SCORES[:, 0], absent="ignore", **options)
        assert np.isnan(result if isinstance(result, float) else list(vars(result).values())).all()


def test_columns_that_are_not_the_labels():
    parts = "must have one column per class", "3 columns for 4 classes (ant, bee, cat, dog)", "pass labels="
    names = ["ant", "bee", "cat", "dog"]
    with refused("y_score", *parts):
        mauc_score(Y, SCORES, labels=names)
    with refused("score_b", *parts):
        compare_mauc(Y, np.ones((12, 4)), SCORES, labels=names)


def test_long_lists_of_classes_are_abridged():
    came = "3 columns for 12 classes (0, 1, 2, 3, 4, 5, 6, 7, …)"
    with refused("y_score", "must have one column per class", came, "pass"):
        mauc_score(np.arange(12), SCORES)


def test_class_without_weight_goes_by_its_label():
    # Its code would be the label of another class.
    with refused("sample_weight", "must have a positive sum in every class", "for class 2", "drop the samples"):
        mauc_score([0, 1, 2] * 4, SCORES, labels=[2, 1, 0], sample_weight=[1, 1, 0] * 4)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_diagonal_pairs_are_none_whatever_their_rounding(n_classes):
    for seed in range(20):
        diagonal = np.diag(np.random.default_rng(seed).random(n_classes))
        with refused("pairs", "must be 'ovo', 'ova', 'ovr' or a", "no positive weight off the diagonal", OF_PAIR):
            validation.check_pairs(diagonal, n_classes)
        diagonal[0, 1] = 1e-30
        np.testing.assert_array_equal(validation.check_pairs(diagonal, n_classes), diagonal)


@pytest.mark.parametrize("level", [0, 95, np.nan, "0.95", True])
def test_level(level):
    for call in CALLS[2:]:
        with refused("level", "must be a finite number strictly between 0 and 1", repr(level)):
            call(Y, SCORES, level=level)


@pytest.mark.parametrize("level", [np.float32(0.5), Fraction(1, 2)])
def test_level_of_any_real_type(level):
    assert mauc_interval(Y, SCORES, level=level) == mauc_interval(Y, SCORES, level=0.5)


@pytest.mark.parametrize("call", [*CALLS[:3], lambda y, s, *rest: compare_mauc(y, s, s, *rest)])
def test_parameters_after_the_star_go_by_name(call):
    with pytest.raises(TypeError, match="positional argument"):
        call(Y, SCORES, "ovo")


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

    @pytest.mark.parametrize("call", [call for calls in SCORE_CALLS.values() for call in calls])
    def test_another_order(self, call):
        turned = Frame(SCORES[:, self.TURNED], ["cat", "ant", "bee"])
        np.testing.assert_equal(call(Y, turned), call(Y, SCORES))
        np.testing.assert_equal(call(Y, turned, labels=["ant", "bee", "cat"]), call(Y, SCORES))

    def test_the_same_text_before_every_class(self):
        turned = Frame(SCORES[:, self.TURNED], ["p_cat", "p_ant", "p_bee"])
        assert mauc_score(Y, turned) == mauc_score(Y, SCORES)
        numbers = np.unique(Y, return_inverse=True)[1] + 1.0
        for columns in (["p_3", "p_1", "p_2"], ["p_3.0", "p_1.0", "p_2.0"]):
            assert mauc_score(numbers, Frame(SCORES[:, self.TURNED], columns)) == mauc_score(Y, SCORES)

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

    @pytest.mark.parametrize(
        ("columns", "dtype"),
        [([3, 1, 2], str), (["3", "1", "2"], float), ([3.0, 1.0, 2.0], int), (["3.0", "1.0", "2.0"], int)],
    )
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
    def test_some_names_are_refused(self, columns):
        frame = Frame(np.ones((12, len(columns))), columns)
        requirement = "must have all columns named after the classes, or none"
        came = f"the columns {', '.join(columns)} for the classes ant, bee, cat"
        with refused("y_score", requirement, came, "match columns by position"):
            mauc_score(Y, frame)

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


def test_numbers_that_float64_tells_apart():
    expected = mauc_score(Y, SCORES.round(9))
    decimals = np.array([[Decimal(str(x)) for x in row] for row in SCORES.round(9).tolist()])
    for scores in (decimals, decimals.tolist(), SCORES.round(9).astype(np.longdouble)):
        assert mauc_score(Y, scores) == expected
    assert mauc_score([0, 1], [[2**53, 0.5], [1e300, 0.75]]) == 0.5


def test_whole_numbers_of_a_table_beside_fractions():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"ant": np.arange(12) + 2**60, "bee": 0.5, "cat": 0.25})
    with pytest.raises(ValueError, match="y_score must hold numbers that float64 tells apart"):
        mauc_score(Y, table)
    assert 0.0 <= mauc_score(Y, table.assign(ant=np.arange(12))) <= 1.0


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
