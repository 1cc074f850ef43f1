"""Each score is checked against the definition written out here, the O(N²) kernel and scikit-learn."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles import pairwise_auc as pairwise_oracle
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from mauc._kernels.auc import auc_matrix
from mauc.metrics import mauc_interval
from mauc.metrics.scores import mauc_score, pairwise_auc
from mauc.partition import ClassPartition


def simulated(counts, seed=0, *, sep=1.0, decimals=None):
    """Classes of the sizes ``counts``, in random order, and scores that find them a little."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    scores = rng.normal(size=(len(y), len(counts))) + sep * np.eye(len(counts))[y]
    return y, scores if decimals is None else np.round(scores, decimals)


def probabilities(counts, seed=0, kind="smooth"):
    """Scores whose rows sum to 1, as scikit-learn demands; ``"tied"``: twentieths."""
    y, scores = simulated(counts, seed)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    if kind == "tied":
        p = np.random.default_rng(seed).multinomial(20, p) / 20
    return y, p.astype(np.float32) if kind == "float32" else p


def definition(codes, scores, n_classes, weight=None):
    """AUC_{i|j}: two loops over the classes, two over the samples, in fractions."""
    weight = [Fraction(1)] * len(codes) if weight is None else [Fraction(float(w)) for w in weight]
    auc = np.full((n_classes, n_classes), np.nan)
    for i in range(n_classes):
        for j in range(n_classes):
            won = pairs = Fraction(0)
            for m in range(len(codes)):
                for n in range(len(codes)):
                    if codes[m] == i and codes[n] == j and i != j:
                        pairs += weight[m] * weight[n]
                        credit = 2 * bool(scores[m, i] > scores[n, i]) + bool(scores[m, i] == scores[n, i])
                        won += weight[m] * weight[n] * credit / 2
            if pairs:
                auc[i, j] = float(won / pairs)
    return auc


def by_ranks(y, scores):
    """AUC_{i|j} by the rank sums of Mann and Whitney."""
    n_classes = scores.shape[1]
    auc = np.full((n_classes, n_classes), np.nan)
    for i in range(n_classes):
        for j in set(range(n_classes)) - {i}:
            p, q = scores[y == i, i], scores[y == j, i]
            auc[i, j] = (rankdata(np.r_[p, q].astype(float))[: len(p)].sum() - len(p) * (len(p) + 1) / 2) / (
                len(p) * len(q)
            )
    return auc


def oracle(codes, scores, n_classes, weight=None):
    partition = ClassPartition(codes, n_classes, weight)
    return pairwise_oracle(partition.problem(scores))


def assert_same(a, b):
    np.testing.assert_array_equal(a, b, strict=True)


def assert_close(a, b, atol=1e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=atol)


CASES = [
    pytest.param((7, 5), None, np.float64, id="two"),
    pytest.param((9, 4, 1), 1, np.float64, id="singleton and ties"),
    pytest.param((1, 1, 1, 1), 0, np.float32, id="all singletons"),
    pytest.param((12, 6, 3, 2, 1), 0, np.int64, id="imbalanced, whole numbers"),
    pytest.param((12, 6, 3, 2, 1), None, np.float16, id="half precision"),
    pytest.param((2,) * 33, 1, np.float32, id="33 classes"),
]

SCORES = st.sampled_from(
    [
        st.integers(-2, 2).map(float),
        st.sampled_from([-0.0, 0.0, 5e-324, -5e-324]),
        st.sampled_from([s * m * 10.0**e for s in (-1, 1) for m in (1, 1 + 2**-52) for e in (-30, 0, 30)]),
        st.sampled_from([s * 10.0**e for s in (-1, 1) for e in (-300, -200, 0, 200, 300)]),
        st.floats(-1, 1),
        st.floats(allow_nan=False, allow_infinity=False),
    ]
)


@st.composite
def scored(draw, dtypes=(np.float64, np.float32)):
    """Codes with every class present, many of them singletons, and scores with heavy ties or of any size."""
    counts = draw(st.lists(st.sampled_from([1, 1, 2, 3, 7]), min_size=2, max_size=5))
    codes = np.array(draw(st.permutations(np.repeat(np.arange(len(counts)), counts).tolist())))
    dtype = draw(st.sampled_from(dtypes))
    scores = draw(arrays(np.float64, (len(codes), len(counts)), elements=draw(SCORES)))
    with np.errstate(over="ignore"):
        narrow = scores.astype(dtype)
    return codes, np.clip(narrow, np.finfo(dtype).min, np.finfo(dtype).max)


class TestAgainstTheDefinition:
    @pytest.mark.parametrize(("counts", "decimals", "dtype"), CASES)
    def test_exact_and_weighted(self, counts, decimals, dtype):
        y, scores = simulated(counts, decimals=decimals)
        scores = scores.astype(dtype)
        auc = pairwise_auc(y, scores)
        assert auc.dtype == np.float64
        assert_same(auc, definition(y, scores, len(counts)))
        assert_close(auc, oracle(y, scores, len(counts)))
        weight = np.random.default_rng(1).exponential(size=len(y))
        auc = pairwise_auc(y, scores, sample_weight=weight)
        assert_close(auc, definition(y, scores, len(counts), weight))
        assert_close(auc, oracle(y, scores, len(counts), weight))

    @given(scored())
    def test_any_scores(self, data):
        codes, scores = data
        n_classes = scores.shape[1]
        expected = definition(codes, scores, n_classes)
        assert_same(pairwise_auc(codes, scores), expected)
        assert_close(oracle(codes, scores, n_classes), expected)

    @given(scored(), st.data())
    def test_any_weights(self, data, more):
        codes, scores = data
        weight = more.draw(arrays(np.float64, len(codes), elements=st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.0])))
        weight[np.bincount(codes, weight)[codes] == 0] = 0.7
        auc = pairwise_auc(codes, scores, sample_weight=weight)
        assert_close(auc, definition(codes, scores, scores.shape[1], weight))

    @pytest.mark.parametrize("by_class", [False, True])
    def test_weights_across_all_floats(self, by_class):
        y, scores = simulated((6, 4, 5), decimals=0)
        rng = np.random.default_rng(1)
        weight = np.array([1e-250, 1.0, 1e250])[y] if by_class else 10.0 ** rng.uniform(-135, 135, len(y))
        auc = pairwise_auc(y, scores, sample_weight=weight)
        assert_close(auc, definition(y, scores, 3, weight))
        assert mauc_score(y, scores, sample_weight=weight) == pytest.approx(np.nanmean(auc), abs=1e-12)
        assert (np.nan_to_num(auc) >= 0).all()
        assert (np.nan_to_num(auc) <= 1).all()

    @pytest.mark.parametrize("decimals", [None, 2])
    def test_more_positives_than_a_block(self, decimals):
        counts = (70_000, 66_000, 900, 1)
        assert max(counts) > 1 << 16
        y, scores = simulated(counts, decimals=decimals)
        assert_same(pairwise_auc(y, scores), by_ranks(y, scores))
        wide = np.insert(scores, 0, 0.0, axis=1)
        assert_same(pairwise_auc(y, wide, labels=[9, 0, 1, 2, 3])[1:, 1:], by_ranks(y, scores))

    def test_scores_that_pile_up(self):
        y, scores = simulated((400, 300, 20), sep=2.0)
        for sharpness in (30.0, 300.0):
            piled = expit(sharpness * scores)
            assert_same(pairwise_auc(y, piled), by_ranks(y, piled))

    def test_one_far_value_squeezes_the_rest_together(self):
        y, scores = simulated((200, 100, 50))
        for far in (1e6, 1e18, 1e300):
            scores[np.flatnonzero(y == 0)[0]] = far
            scores[np.flatnonzero(y == 1)[0]] = -far
            assert_same(pairwise_auc(y, scores), by_ranks(y, scores))


class TestAgainstScikitLearn:
    @pytest.mark.parametrize(
        ("counts", "kind"),
        [
            pytest.param((25,) * 4, "smooth", id="4 equal"),
            pytest.param((400, 90, 20, 2, 1), "tied", id="5 imbalanced"),
            pytest.param((1, 2, 40) * 4, "float32", id="12"),
        ],
    )
    def test_ovo_and_one_vs_rest(self, counts, kind):
        y, p = probabilities(counts, kind=kind)
        assert mauc_score(y, p) == pytest.approx(roc_auc_score(y, p, multi_class="ovo", average="macro"), abs=1e-12)
        for w in (None, np.random.default_rng(1).exponential(size=len(y))):
            columns = [roc_auc_score(y == i, p[:, i], sample_weight=w) for i in range(len(counts))]
            assert mauc_score(y, p, pairs="ova", sample_weight=w) == pytest.approx(np.mean(columns), abs=1e-12)
        prior = np.bincount(y) / len(y)
        expected = roc_auc_score(y, p, multi_class="ovo", average="weighted")
        assert mauc_score(y, p, pairs=prior[:, None] + prior) == pytest.approx(expected, abs=1e-12)


class TestTwoClasses:
    @pytest.mark.parametrize(("decimals", "weighted"), [(None, False), (0, True)])
    def test_one_column_scores_the_second_class(self, decimals, weighted):
        y, scores = simulated((40, 9), decimals=decimals)
        s = scores[:, 1]
        w = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
        expected = roc_auc_score(y, s, sample_weight=w)
        for one in (s, s.tolist(), s[:, None], np.column_stack([-s, s]), np.column_stack([1 - s, s])):
            for pairs in ("ovo", "ova"):
                assert mauc_score(y, one, pairs=pairs, sample_weight=w) == pytest.approx(expected, abs=1e-12)
            assert_close(pairwise_auc(y, one, sample_weight=w)[[0, 1], [1, 0]], expected, 1e-12)

    def test_labels_say_which_class_is_the_second(self):
        y, scores = simulated((40, 9))
        s, names = scores[:, 1], np.array(["no", "yes"])
        expected = roc_auc_score(y, s)
        assert mauc_score(names[y], s, labels=["no", "yes"]) == pytest.approx(expected, abs=1e-12)
        assert mauc_score(names[y], s, labels=["yes", "no"]) == pytest.approx(1 - expected, abs=1e-12)


class TestTheoremOne:
    """The relations of ova and ovo in the paper."""

    @given(scored())
    def test_a_ova_from_the_matrix(self, data):
        codes, scores = data
        prior = [Fraction(int(n), len(codes)) for n in np.bincount(codes)]
        auc = definition(codes, scores, len(prior))
        n_classes = len(prior)
        terms = [
            prior[j] / (n_classes * (1 - prior[i])) * Fraction(auc[i, j])
            for i in range(n_classes)
            for j in range(n_classes)
            if i != j
        ]
        assert mauc_score(codes, scores, pairs="ova") == pytest.approx(float(sum(terms)), abs=1e-15)

    @pytest.mark.parametrize(("n_classes", "size"), [(2, 5), (7, 1), (40, 5)])
    def test_b_equal_class_sizes(self, n_classes, size):
        y, scores = simulated((size,) * n_classes)
        ovo, ova = mauc_score(y, scores), mauc_score(y, scores, pairs="ova")
        assert ovo == pytest.approx(ova, abs=1e-14)
        assert 0 < ovo < 1

    @given(scored())
    def test_c_both_are_1_or_neither(self, data):
        codes, scores = data
        better = scores + 0.0
        better[np.arange(len(codes)), codes] = scores.max()
        for s in (scores, better):
            assert (mauc_score(codes, s) == 1) == (mauc_score(codes, s, pairs="ova") == 1)

    @pytest.mark.parametrize(
        ("pair", "auc", "ova", "ovo"),
        [
            pytest.param((0, 2), 0.5, 1 - 0.5 / 30, 1 - 0.5 / 6, id="f_a: .983, .917"),
            pytest.param((0, 1), 0.8, 0.94, 1 - 0.2 / 6, id="f_b: .940, .967"),
        ],
    )
    def test_example_1(self, pair, auc, ova, ovo):
        # The paper prints .933 for the ova of f_b.
        y = np.repeat([0, 1, 2], [10, 9, 1])
        matrix = np.ones((3, 3))
        matrix[pair] = auc
        partition = ClassPartition(y, 3)
        assert_close(partition.priors, [0.5, 0.45, 0.05], 1e-16)
        assert np.sum(partition.pair_weights("ova") * matrix) == pytest.approx(ova, abs=1e-15)
        assert np.sum(partition.pair_weights("ovo") * matrix) == pytest.approx(ovo, abs=1e-15)

        scores = 100.0 * np.eye(3)[y]
        scores[:10, 0] = np.arange(1, 11)
        if pair == (0, 2):
            scores[19, 0] = 5.5  # the one sample of class 2 beats five of the ten positives
        else:
            scores[10:12, 0] = 9.5  # two of the nine samples of class 1 beat nine of the ten: 18 pairs of 90
        found = pairwise_auc(y, scores)
        assert found[pair] == auc
        assert_same(found[~np.eye(3, dtype=bool)], matrix[~np.eye(3, dtype=bool)])
        assert mauc_score(y, scores, pairs="ova") == pytest.approx(ova, abs=1e-15)
        assert mauc_score(y, scores) == pytest.approx(ovo, abs=1e-15)
        assert round(mauc_score(y, scores, pairs="ova"), 3) == round(ova, 3)


class TestExactValues:
    @pytest.mark.parametrize("pairs", ["ovo", "ova", "matrix"])
    @pytest.mark.parametrize(("own", "other", "expected"), [(1, 0, 1.0), (0, 0, 0.5), (0, 1, 0.0)])
    def test_perfect_constant_and_reversed(self, pairs, own, other, expected):
        for n_classes in [*range(2, 14), 31, 32, 33, 60]:
            y = np.repeat(np.arange(n_classes), 1 + np.arange(n_classes) % 4)
            scores = np.where(np.eye(n_classes, dtype=bool)[y], float(own), float(other))
            weights = np.random.default_rng(0).random((n_classes, n_classes)) if pairs == "matrix" else pairs
            assert mauc_score(y, scores, pairs=weights) == expected, n_classes
            off = ~np.eye(n_classes, dtype=bool)
            assert (pairwise_auc(y, scores)[off] == expected).all()

    def test_never_outside_0_and_1(self):
        rng = np.random.default_rng(0)
        for _ in range(100):
            y = np.repeat(np.arange(3), 5)
            w = rng.exponential(size=15)
            for sign in (1, -1):
                auc = pairwise_auc(y, sign * np.eye(3)[y], sample_weight=w)
                off = auc[~np.eye(3, dtype=bool)]
                assert (off >= 0).all()
                assert (off <= 1).all()
                for pairs in ("ovo", "ova"):
                    score = mauc_score(y, sign * np.eye(3)[y], pairs=pairs, sample_weight=w)
                    assert 0 <= score <= 1

    def test_a_python_float(self):
        assert type(mauc_score([0, 1], [0, 1])) is float
        with pytest.warns(UndefinedMetricWarning):
            assert type(mauc_score([0], [0], absent="ignore")) is float


class TestInvariance:
    @given(scored(), st.randoms(use_true_random=False))
    def test_order_of_samples(self, data, random):
        codes, scores = data
        order = np.array(random.sample(range(len(codes)), len(codes)))
        assert_same(pairwise_auc(codes[order], scores[order]), pairwise_auc(codes, scores))
        assert mauc_score(codes[order], scores[order], pairs="ova") == mauc_score(codes, scores, pairs="ova")

    @given(scored(), st.randoms(use_true_random=False))
    def test_relabelling(self, data, random):
        codes, scores = data
        n_classes = scores.shape[1]
        new = np.array(random.sample(range(n_classes), n_classes))
        moved = np.empty_like(scores)
        moved[:, new] = scores
        assert_same(pairwise_auc(new[codes], moved)[np.ix_(new, new)], pairwise_auc(codes, scores))

    @given(scored(dtypes=[np.float64]), st.data())
    def test_strictly_increasing_maps_of_a_column(self, data, more):
        codes, scores = data
        mapped = np.empty_like(scores)
        for i, column in enumerate(scores.T):
            rank = rankdata(column, method="dense").astype(int) - 1
            size = int(rank.max()) + 1
            some = st.floats(allow_nan=False, allow_infinity=False)
            values = more.draw(st.lists(some, min_size=size, max_size=size, unique=True))
            mapped[:, i] = np.sort(values)[rank]
        assert_same(pairwise_auc(codes, mapped), pairwise_auc(codes, scores))

    def test_negatives_far_from_tiny_positives(self):
        y, scores = simulated((30, 20, 5))
        scores[y == 0] *= 1e-200
        scores[y != 0] *= 1e200
        assert_same(pairwise_auc(y, scores), by_ranks(y, scores))

    def test_float32_is_widened_not_compared_narrow(self):
        y, scores = simulated((30, 20, 5))
        narrow = scores.astype(np.float32)
        assert_same(pairwise_auc(y, narrow), pairwise_auc(y, narrow.astype(np.float64)))

    @pytest.mark.parametrize(("n_classes", "weighted"), [(3, True), (40, False)])
    def test_layout_in_memory(self, n_classes, weighted):
        y, scores = simulated((6,) * n_classes)
        w = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
        expected = pairwise_auc(y, scores, sample_weight=w)
        padded = np.zeros((2 * len(y), 3 * n_classes))
        padded[::2, ::3] = scores
        reversed_ = np.ascontiguousarray(scores[::-1, ::-1])[::-1, ::-1]
        swapped = scores.astype(scores.dtype.newbyteorder())
        for other in (np.asfortranarray(scores), padded[::2, ::3], reversed_, swapped, scores.tolist()):
            assert_same(pairwise_auc(y, other, sample_weight=w), expected)
        assert_same(pairwise_auc(np.repeat(y, 2)[::2], scores, sample_weight=w), expected)

    def test_input_is_read_only(self):
        y, scores = simulated((30, 20, 5))
        w, pairs = np.ones(len(y)), np.ones((3, 3))
        expected = mauc_score(y, scores, sample_weight=w, pairs=pairs)
        copies = [a.copy() for a in (y, scores, w, pairs)]
        for a in (y, scores, w, pairs):
            a.flags.writeable = False
        assert mauc_score(y, scores, sample_weight=w, pairs=pairs) == expected
        for a, b in zip((y, scores, w, pairs), copies, strict=True):
            assert_same(a, b)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [3, 40])
def test_how_the_scores_are_cut_up_changes_nothing(n_classes, weighted):
    y, scores = simulated([1 + k % 5 for k in range(n_classes - 1)], decimals=1)
    scores = np.insert(scores, 1, scores[:, 0], axis=1)
    y = y + (y >= 1)  # class 1 is absent
    weight = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
    whole = ClassPartition(y, n_classes, weight).problem(scores, normalised=False)
    expected = auc_matrix(whole)
    for block, tile, below in ((1, 1, 0), (7, 5, 2), (30, 64, 1000), (1, 64, 1000)):
        cut = replace(whole, block_positives=block, tile_elements=tile, columns_first_below=below)
        assert_close(auc_matrix(cut), expected, 1e-15)


class TestSampleWeight:
    @pytest.mark.parametrize("pairs", ["ovo", "ova"])
    def test_whole_weights_are_repetitions(self, pairs):
        y, scores = simulated((30, 20, 5), decimals=1)
        w = np.random.default_rng(1).integers(1, 5, len(y))
        many = np.repeat(y, w), np.repeat(scores, w, axis=0)
        assert_same(pairwise_auc(y, scores, sample_weight=w), pairwise_auc(*many))
        assert mauc_score(y, scores, sample_weight=w, pairs=pairs) == mauc_score(*many, pairs=pairs)

    @pytest.mark.parametrize("pairs", ["ovo", "ova"])
    def test_zero_weights_drop_samples(self, pairs):
        y, scores = simulated((30, 20, 5), decimals=1)
        rng = np.random.default_rng(1)
        w = rng.exponential(size=len(y)) * (rng.random(len(y)) < 0.6)
        kept = w > 0
        assert 0 < kept.sum() < len(y)
        some = pairwise_auc(y[kept], scores[kept], sample_weight=w[kept])
        assert_close(pairwise_auc(y, scores, sample_weight=w), some)
        score = mauc_score(y[kept], scores[kept], sample_weight=w[kept], pairs=pairs)
        assert mauc_score(y, scores, sample_weight=w, pairs=pairs) == pytest.approx(score, abs=1e-14)

    @pytest.mark.parametrize(("factor", "equal"), [(1e-300, True), (3.0, False), (1e170, False), (1e300, True)])
    def test_scale_does_not_matter(self, factor, equal):
        y, scores = simulated((30, 20, 5), decimals=1)
        w = np.ones(len(y)) if equal else np.random.default_rng(1).uniform(0.5, 2, len(y))
        for pairs in ("ovo", "ova"):
            expected = mauc_score(y, scores, sample_weight=w, pairs=pairs)
            assert mauc_score(y, scores, sample_weight=factor * w, pairs=pairs) == pytest.approx(expected, abs=1e-13)
        if equal:
            assert expected == pytest.approx(mauc_score(y, scores, pairs="ova"), abs=1e-14)


class TestPairs:
    def test_matrix_is_normalised_and_its_diagonal_ignored(self):
        y, scores = simulated((30, 20, 5))
        auc = pairwise_auc(y, scores)
        weights = np.array([[0.0, 1, 2], [3, 0, 0], [0, 5, 0]])
        expected = (auc[0, 1] + 2 * auc[0, 2] + 3 * auc[1, 0] + 5 * auc[2, 1]) / 11
        for factor in (1.0, 1e-200, 1e200):
            for diagonal in (0.0, 7.0, 1e20):
                pairs = factor * weights + np.diag([diagonal] * 3)
                assert mauc_score(y, scores, pairs=pairs) == pytest.approx(expected, abs=1e-15)
        assert mauc_score(y, scores, pairs=weights.astype(int).tolist()) == pytest.approx(expected, abs=1e-15)

    def test_matrix_orientation(self):
        y, scores = simulated((30, 20, 5))
        auc = pairwise_auc(y, scores)
        for i in range(3):
            for j in {0, 1, 2} - {i}:
                one = np.zeros((3, 3))
                one[i, j] = 0.3
                assert mauc_score(y, scores, pairs=one) == auc[i, j]


class TestLabels:
    NAMES = (
        pytest.param(["ant", "bee", "cat"], id="str"),
        pytest.param([b"ant", b"bee", b"cat"], id="bytes"),
        pytest.param(np.array(["ant", "bee", "cat"], dtype=object), id="object"),
        pytest.param([-7, 5, 1_000_000], id="negative, gaps"),
        pytest.param([-(2**63), -(2**63) + 1, 2**63 - 1], id="extremes of int64"),
        pytest.param(np.array([2**64 - 3, 2**64 - 2, 2**64 - 1], dtype=np.uint64), id="dense uint64"),
        pytest.param(np.array([-128, 0, 127], dtype=np.int8), id="int8"),
        pytest.param([-1.0, 0.0, 12.0], id="whole floats"),
        pytest.param([2**70, 2**71, 2**72], id="beyond int64"),
    )

    @pytest.mark.parametrize("names", NAMES)
    def test_names(self, names):
        y, scores = simulated((30, 20, 5))
        expected, names, order = pairwise_auc(y, scores), np.asarray(names), np.array([2, 0, 1])
        assert_same(pairwise_auc(names[y], scores), expected)
        assert_same(pairwise_auc(names[y].tolist(), scores), expected)
        assert_same(pairwise_auc(names[y][:, None], scores), expected)
        auc = pairwise_auc(names[y], scores[:, order], labels=names[order])
        assert_same(auc, expected[np.ix_(order, order)])

    def test_bool(self):
        y, scores = simulated((30, 20))
        expected = pairwise_auc(y, scores)
        assert_same(pairwise_auc(y == 1, scores), expected)
        assert_same(pairwise_auc((y == 1).tolist(), scores, labels=[False, True]), expected)
        assert_same(pairwise_auc(y == 1, scores, labels=[0, 1]), expected)

    def test_numbers_match_whatever_their_type(self):
        y, scores = simulated((30, 20, 5))
        expected = pairwise_auc(y, scores)
        assert_same(pairwise_auc(y.astype(float), scores, labels=[0, 1, 2]), expected)
        assert_same(pairwise_auc(y.astype(np.uint8), scores, labels=[0.0, 1.0, 2.0]), expected)

    def test_longer_strings_in_labels(self):
        y, scores = simulated((30, 20))
        names = np.array(["a", "bb"])
        assert_same(pairwise_auc(names[y], scores, labels=["a", "bb"]), pairwise_auc(y, scores))
        wide = np.insert(scores, 0, 0.0, axis=1)
        auc = pairwise_auc(names[y], wide, labels=["a much longer name", "a", "bb"])
        assert_same(auc[1:, 1:], pairwise_auc(y, scores))

    def test_pandas(self):
        pd = pytest.importorskip("pandas")
        y, scores = simulated((30, 20, 5))
        names = np.array(["ant", "bee", "cat"])
        w = np.random.default_rng(1).exponential(size=len(y))
        expected = pairwise_auc(y, scores, sample_weight=w)
        index = np.random.default_rng(2).permutation(len(y)) + 1000
        frame = pd.DataFrame(scores, columns=names, index=index)
        weight = pd.Series(w, index=index)
        for target in (
            pd.Series(names[y], index=index),
            pd.Series(names[y], index=index, dtype=object),
            pd.Series(names[y], index=index, dtype="string"),
            pd.Series(names[y], index=index, dtype="category"),
            pd.Series(pd.Categorical(names[y], categories=["dog", "cat", "bee", "ant"]), index=index),
            pd.Categorical(names[y]),
            pd.Series(y, index=index),
            pd.Series(y, index=index, dtype="Int64"),
            pd.DataFrame({"target": y}, index=index),
        ):
            assert_same(pairwise_auc(target, frame, sample_weight=weight), expected)
        auc = pairwise_auc(pd.Series(names[y]), frame[["cat", "ant", "bee"]], labels=pd.Index(["cat", "ant", "bee"]))
        assert_same(auc, pairwise_auc(y, scores)[np.ix_([2, 0, 1], [2, 0, 1])])
        for missing in (None, np.nan, pd.NA):
            target = pd.Series([*names[y[:-1]], missing], dtype=object)
            with pytest.raises(ValueError, match=r"^y_true must name the class of every sample, got a missing value"):
                pairwise_auc(target, frame)


class TestAbsentClasses:
    LABELS = ("x", "ant", "bee", "z", "cat")

    def data(self):
        y, scores = simulated((30, 20, 5))
        wide = np.insert(scores, [0, 2], 9.0, axis=1)
        return np.array(["ant", "bee", "cat"])[y], wide, scores

    def test_matrix_is_nan_there(self):
        y, wide, scores = self.data()
        auc = pairwise_auc(y, wide, labels=self.LABELS)
        here = [1, 2, 4]
        assert_same(auc[np.ix_(here, here)], pairwise_auc(y, scores))
        assert np.isnan(auc[[0, 3]]).all()
        assert np.isnan(auc[:, [0, 3]]).all()

    def test_raise_names_them(self):
        y, wide, _ = self.data()
        with pytest.raises(ValueError, match=r"^y_true must hold every class of labels, got no sample of x, z: drop"):
            mauc_score(y, wide, labels=self.LABELS)

    @pytest.mark.parametrize(("pairs", "weighted"), [("ovo", False), ("ova", True)])
    def test_ignore_averages_over_what_is_there(self, pairs, weighted):
        y, wide, scores = self.data()
        w = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
        options = {"pairs": pairs, "sample_weight": w}
        score = mauc_score(y, wide, labels=self.LABELS, absent="ignore", **options)
        assert score == pytest.approx(mauc_score(y, scores, **options), abs=1e-15)

    def test_ignore_renormalises_a_matrix(self):
        y, wide, scores = self.data()
        pairs = np.random.default_rng(1).random((5, 5))
        here = np.ix_([1, 2, 4], [1, 2, 4])
        score = mauc_score(y, wide, labels=self.LABELS, absent="ignore", pairs=pairs)
        assert score == pytest.approx(mauc_score(y, scores, pairs=pairs[here]), abs=1e-15)

    @pytest.mark.parametrize(
        ("y", "options"),
        [
            pytest.param([1, 1], {}, id="one class"),
            pytest.param([1, 1], {"labels": [0, 1]}, id="one class of two"),
            pytest.param([1, 1], {"labels": [0, 1], "pairs": "ova"}, id="ova"),
            pytest.param([0, 1], {"labels": [0, 1, 2], "pairs": np.eye(3)[[2, 2, 0]]}, id="no weight left"),
        ],
    )
    def test_ignore_that_leaves_no_pair(self, y, options):
        scores = np.ones((2, len(options.get("labels", [0]))))
        with pytest.warns(
            UndefinedMetricWarning, match="no pair of classes .* undefined and returned as NaN"
        ) as record:
            score = mauc_score(y, scores, absent="ignore", **options)
        assert np.isnan(score)
        assert [w.filename for w in record] == [__file__]


def test_ovr_is_another_name_of_ova():
    y, scores = np.array([0] * 7 + [1] * 3 + [2] * 2), np.random.default_rng(0).normal(size=(12, 3))
    assert mauc_score(y, scores, pairs="ovr") == mauc_score(y, scores, pairs="ova")
    assert mauc_interval(y, scores, pairs="ovr") == mauc_interval(y, scores, pairs="ova")
