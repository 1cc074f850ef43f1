"""Intervals against their formula written out, DeLong's in large samples, the bootstrap and, if slow, simulation."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats
from sklearn.exceptions import UndefinedMetricWarning
from strategies import examples

from mauc._kernels import auc as ranks
from mauc.metrics.inference import Comparison, compare_mauc, mauc_interval
from mauc.metrics.scores import mauc_score
from mauc.metrics.text_report import multiclass_auc_report
from mauc.partition import ClassPartition

COUNTS = (220, 120, 60)


def simulated(counts, seed=0, *, sep=1.0, decimals=None):
    """Classes of the sizes ``counts``, in random order, and scores that find them a little."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    scores = rng.normal(size=(len(y), len(counts))) + sep * np.eye(len(counts))[y]
    return y, scores if decimals is None else np.round(scores, decimals)


def two_models(counts=COUNTS, seed=0):
    y, shared = simulated(counts, seed)
    rng = np.random.default_rng(seed + 1)
    return y, shared + 0.5 * rng.normal(size=shared.shape), shared + 1.5 * rng.normal(size=shared.shape)


def definition(p):
    """Each sample's share in Σ v_ij AUC_{i|j}, pair by pair."""
    influence = np.zeros(len(p.classes.y))
    for m, i in enumerate(p.classes.y):
        for n, j in enumerate(p.classes.y):
            if i != j:
                own, other = float(p.scores[m, i]), float(p.scores[n, i])
                credit = p.classes.v[i, j] * ((own > other) + 0.5 * (own == other))
                influence[m] += p.classes.unit[n] * credit
                influence[n] += p.classes.unit[m] * credit
    return influence


def delong(y, *scores):
    """AUCs of scores for class 1 and their covariance matrix, as DeLong, DeLong and Clarke-Pearson (1988) write it."""
    v10, v01 = [], []
    for s in scores:
        x, z = s[y == 1], s[y == 0]
        kernel = np.array([[1.0 if a > b else 0.5 if a == b else 0.0 for b in z] for a in x])
        v10.append(kernel.mean(axis=1))
        v01.append(kernel.mean(axis=0))
    s10, s01 = np.atleast_2d(np.cov(v10)), np.atleast_2d(np.cov(v01))
    return np.mean(v10, axis=1), s10 / np.sum(y == 1), s01 / np.sum(y == 0)


def effective_size(variances, n, v, extra, bernoulli, in_all, random, rows, least):
    """Effective number of Bernoulli samples, and the degrees of freedom, class by class as in the docs."""
    classes = range(len(n))
    w = [v[i].sum() + v[:, i].sum() for i in classes]
    shares = [[v[i].sum() / w[i], *(v[j, i] / w[i] for j in classes if j != i)] for i in classes]
    concentration = [sum(a**2 for a in shares[i]) for i in classes]
    few = [c / max(concentration) for c in concentration]
    ratio = random / 3 + sum((n[i] - 1) * variances[i] / w[i] ** 2 for i in classes)
    ratio /= random + sum((n[i] - 1) * few[i] * bernoulli[i] for i in classes)
    ours, whole = [], []
    for i in classes:
        own = (random + (n[i] - 1) * bernoulli[i]) / n[i]
        common = max(ratio, least) * few[i] * own + extra[i]
        within = rows * common + (n[i] - 1) * variances[i] / w[i] ** 2
        ours.append(w[i] ** 2 / n[i] * within / (rows + n[i] - 1))
        as_all = (random + (n[i] - 1) * in_all) / n[i]
        whole.append(w[i] ** 2 / n[i] * (as_all + (n[i] - 1) * in_all) / n[i])
    freedom = sum(ours) ** 2 / sum(ours[i] ** 2 / (n[i] - 1 + 2 * rows) for i in classes)
    return sum(whole) / sum(ours) / sum(w[i] ** 2 / n[i] for i in classes), freedom


def stratified_bootstrap(y, statistic, repeats=1500):
    """Standard deviation of the statistic of samples drawn again within each class."""
    rng = np.random.default_rng(0)
    groups = [np.flatnonzero(y == k) for k in np.unique(y)]
    draws = [statistic(np.concatenate([rng.choice(g, len(g)) for g in groups])) for _ in range(repeats)]
    return np.std(draws)


def assert_results(a, b, **tolerance):
    np.testing.assert_allclose(dataclasses.astuple(a), dataclasses.astuple(b), **(tolerance or {"rtol": 1e-12}))


class TestInfluence:
    @examples(30)
    @given(st.data())
    def test_any_scores(self, data):
        counts = data.draw(st.lists(st.sampled_from([1, 1, 2, 3, 6]), min_size=2, max_size=4))
        y = np.array(data.draw(st.permutations(np.repeat(np.arange(len(counts)), counts).tolist())))
        elements = data.draw(
            st.sampled_from(
                [
                    st.integers(-1, 1).map(float),
                    st.sampled_from([-1e30, -1e-30, -0.0, 0.0, 1e-30, 1e30]),
                    st.floats(allow_nan=False, allow_infinity=False, width=32),
                ]
            )
        )
        dtype = data.draw(st.sampled_from([np.float32, np.float64]))
        scores = data.draw(arrays(dtype, (len(y), len(counts)), elements=elements.map(dtype)))
        partition = ClassPartition(y, len(counts))
        p = partition.problem(scores, partition.pair_weights("ova"))
        np.testing.assert_allclose(ranks.auc_influence(p), definition(p), rtol=0, atol=1e-14)


class TestInterval:
    @pytest.mark.parametrize(
        ("pairs", "weighted"), [("ovo", False), ("ova", True), (np.arange(9).reshape(3, 3), False)]
    )
    def test_score_is_that_of_mauc_score(self, pairs, weighted):
        y, scores = simulated(COUNTS, decimals=1)
        w = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
        result = mauc_interval(y, scores, pairs=pairs, sample_weight=w)
        assert result.score == mauc_score(y, scores, pairs=pairs, sample_weight=w)
        assert 0 < result.low < result.score < result.high < 1

    @pytest.mark.slow
    @pytest.mark.parametrize("decimals", [None, 0])
    def test_two_classes_are_delong_in_large_samples(self, decimals):
        y, scores = simulated((4000, 1700), decimals=decimals)
        s = scores[:, 1]
        auc, s10, s01 = delong(y, s)
        stderr = np.sqrt(s10[0, 0] + s01[0, 0])
        for columns, pairs in ((s, "ovo"), (s[:, None], "ova"), (np.column_stack([-s, s]), "ovo")):
            result = mauc_interval(y, columns, pairs=pairs, level=0.9)
            assert result.score == pytest.approx(auc[0], abs=1e-14)
            assert result.stderr == pytest.approx(stderr, rel=1e-3)
            assert (result.high - result.low) / 2 == pytest.approx(stats.norm.ppf(0.95) * stderr, rel=2e-3)

    @pytest.mark.parametrize(("counts", "pairs"), [((2, 2), "ovo"), ((30, 20, 8), "ova"), ((2, 9, 1), "ovo")])
    @pytest.mark.filterwarnings("ignore:class 2 has a single sample")
    def test_formula(self, counts, pairs):
        y, scores = simulated(counts, decimals=1)
        partition = ClassPartition(y, len(counts))
        v = partition.pair_weights(pairs)
        h = definition(partition.problem(scores, v))
        classes = range(len(counts))
        w = [v[i].sum() + v[:, i].sum() for i in classes]
        mean = [h[y == i].mean() / w[i] for i in classes]
        variances = [np.var(h[y == i], ddof=1) if counts[i] > 1 else 0.0 for i in classes]
        result = mauc_interval(y, scores, pairs=pairs, level=0.9)
        unsure = result.score * (1 - result.score)
        extra = [(p - np.average(mean, weights=counts)) ** 2 for p in mean]
        m, freedom = effective_size(variances, counts, v, extra, [p * (1 - p) for p in mean], unsure, 1 / 4, 3, 1 / 6)
        for end in (result.low, result.high):
            distance = stats.t.ppf(0.95, freedom) * np.sqrt(end * (1 - end) / m)
            assert abs(result.score - end) == pytest.approx(distance, rel=1e-9)
        near = (result.score * m + 1 / 4) / (m + 1 / 2)
        assert result.stderr == pytest.approx(np.sqrt(near * (1 - near) / m), rel=1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize(("pairs", "decimals"), [("ovo", 0), ("ova", None)])
    def test_stderr_against_the_bootstrap(self, pairs, decimals):
        y, scores = simulated(COUNTS, decimals=decimals)
        expected = stratified_bootstrap(y, lambda rows: mauc_score(y[rows], scores[rows], pairs=pairs))
        assert mauc_interval(y, scores, pairs=pairs).stderr == pytest.approx(expected, rel=0.1)

    @pytest.mark.slow
    def test_weighted_stderr_against_the_bootstrap(self):
        y, scores = simulated(COUNTS)
        w = np.random.default_rng(1).uniform(0.2, 2, len(y))
        expected = stratified_bootstrap(y, lambda rows: mauc_score(y[rows], scores[rows], sample_weight=w[rows]))
        assert mauc_interval(y, scores, sample_weight=w).stderr == pytest.approx(expected, rel=0.1)

    @pytest.mark.parametrize(("weight", "pairs"), [(1e-200, "ovo"), (7, "ova"), (1e200, "ova")])
    def test_equal_weights_are_none(self, weight, pairs):
        y, scores = simulated((30, 20, 8), decimals=1)
        weighted = mauc_interval(y, scores, pairs=pairs, sample_weight=np.full(len(y), weight))
        assert_results(weighted, mauc_interval(y, scores, pairs=pairs))

    def test_zero_weights_drop_samples(self):
        y, scores = simulated((30, 20, 8))
        rng = np.random.default_rng(1)
        w = rng.exponential(size=len(y)) * (rng.random(len(y)) < 0.7)
        kept = w > 0
        dropped = mauc_interval(y[kept], scores[kept], sample_weight=w[kept])
        assert_results(mauc_interval(y, scores, sample_weight=w), dropped)

    @pytest.mark.parametrize("pairs", ["ovo", "ova"])
    def test_weights_across_all_floats(self, pairs):
        y, scores = simulated((4, 4, 4), sep=2.0)
        w = 10.0 ** np.random.default_rng(1).permutation(np.linspace(-135, 135, 12))
        with pytest.warns(UndefinedMetricWarning, match="classes 0, 1, 2 have a single sample"):
            result = mauc_interval(y, scores, sample_weight=w, pairs=pairs)
        assert result.score == mauc_score(y, scores, sample_weight=w, pairs=pairs)
        assert 0 <= result.low < result.high <= 1
        heaviest = [max(np.flatnonzero(y == k), key=w.__getitem__) for k in range(3)]
        np.testing.assert_allclose(
            mauc_score(y, scores, sample_weight=w), mauc_score(y[heaviest], scores[heaviest]), atol=1e-9
        )

    def test_pairs_without_weight_are_left_out(self):
        y, scores = simulated((30, 20, 1))
        only = np.ones((3, 3))
        only[2] = only[:, 2] = 0.0
        kept = y < 2
        assert_results(mauc_interval(y, scores, pairs=only), mauc_interval(y[kept], scores[kept, :2]))
        for same in (1e308 * only, only + 1e-200):
            assert_results(mauc_interval(y, scores, pairs=same), mauc_interval(y, scores, pairs=only))

    def test_level(self):
        y, scores = simulated((30, 20, 8))
        results = [mauc_interval(y, scores, level=level) for level in (0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999999)]
        lows, highs = [r.low for r in results], [r.high for r in results]
        assert lows == sorted(lows, reverse=True)
        assert highs == sorted(highs)
        assert len(set(lows)) == len(set(highs)) == len(results)
        assert len({(r.score, r.stderr) for r in results}) == 1
        assert 0 < lows[-1] < highs[-1] < 1
        assert mauc_interval(y, scores) == results[4]

    def test_shuffles_labels_and_layouts(self):
        y, scores = simulated((30, 20, 8), decimals=1)
        expected = mauc_interval(y, scores)
        order = np.random.default_rng(1).permutation(len(y))
        assert_results(mauc_interval(y[order], scores[order]), expected)
        names, swap = np.array(["ant", "bee", "cat"]), np.array([2, 0, 1])
        assert_results(mauc_interval(names[y], scores[:, swap], labels=names[swap]), expected)
        assert_results(mauc_interval(y, np.asfortranarray(scores)), expected)
        assert_results(mauc_interval(y, 1e30 * scores), expected)
        narrow = scores.astype(np.float32)
        assert_results(mauc_interval(y, narrow), mauc_interval(y, narrow.astype(float)))

    @pytest.mark.parametrize("pairs", ["ovo", "ova"])
    def test_absent_classes(self, pairs):
        y, scores = simulated((30, 20, 8))
        wide = np.insert(scores, 1, 0.0, axis=1)
        options = {"labels": [0, 9, 1, 2], "pairs": pairs}
        assert_results(mauc_interval(y, wide, absent="ignore", **options), mauc_interval(y, scores, pairs=pairs))
        with pytest.raises(ValueError, match=r"^y_true must hold every class of labels, got no sample of 9: drop"):
            mauc_interval(y, wide, **options)

    def test_no_pair_left(self):
        with pytest.warns(UndefinedMetricWarning, match="undefined and returned as NaN") as record:
            result = mauc_interval([1, 1], [0.1, 0.2], absent="ignore")
        assert np.isnan(dataclasses.astuple(result)).all()
        assert [w.filename for w in record] == [__file__]

    @pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 2.0, 1.0]])
    def test_single_sample(self, weights):
        y, scores = ["owl", "cat", "owl", "cat", "fox"], np.random.default_rng(0).normal(size=(5, 3))
        with pytest.warns(UndefinedMetricWarning, match=r"class fox has a single sample.* that of the other") as record:
            result = mauc_interval(y, scores, sample_weight=weights)
        assert result.score == mauc_score(y, scores, sample_weight=weights)
        assert 0 < result.low < result.score < result.high < 1
        assert [w.filename for w in record] == [__file__]

    def test_a_single_sample_is_less_sure_than_two(self):
        y, scores = simulated((200, 200, 1), sep=2.0)
        with pytest.warns(UndefinedMetricWarning, match="class 2 has a single sample"):
            one = mauc_interval(y, scores)
        rare = int(np.flatnonzero(y == 2)[0])
        two = mauc_interval(np.append(y, 2), np.vstack([scores, scores[rare]]))
        without = mauc_interval(y[y < 2], scores[y < 2, :2])
        assert without.high - without.low < two.high - two.low < one.high - one.low < 0.9

    def test_single_sample_of_positive_weight(self):
        y, scores = np.array([0, 0, 0, 1, 1]), np.random.default_rng(0).normal(size=5)
        with pytest.warns(UndefinedMetricWarning, match="class 1 has a single sample") as record:
            result = mauc_interval(y, scores, sample_weight=[1, 1, 1, 0.1, 0])
        assert [w.filename for w in record] == [__file__]
        with pytest.warns(UndefinedMetricWarning, match="class 1 has a single sample"):
            assert_results(result, mauc_interval(y[:4], scores[:4]))

    @pytest.mark.parametrize(("sign", "score"), [(1, 1.0), (0, 0.5), (-1, 0.0)])
    @pytest.mark.parametrize(("n_classes", "pairs"), [(2, "ovo"), (5, "ova")])
    def test_nothing_varies(self, sign, score, n_classes, pairs):
        ends = []
        for more in (2, 20, 200):
            y = np.repeat(np.arange(n_classes), more + np.arange(n_classes))
            result = mauc_interval(y, sign * np.eye(n_classes)[y], pairs=pairs)
            assert result.score == score
            assert result.stderr > 0
            assert (result.high == 1) == (sign == 1)
            assert (result.low == 0) == (sign == -1)
            ends.append(result.high - result.low)
        assert 0 < ends[2] < ends[1] < ends[0] < 1

    def test_perfect_ranking_of_four_and_of_many(self):
        """More careful than 3/n, what a proportion has: a sample of 2n rows, all pairs right."""
        lows = [mauc_interval(np.repeat([0, 1], n), np.repeat([0.0, 1.0], n)).low for n in (2, 20, 200)]
        assert lows == pytest.approx([0.30, 0.73, 0.963], abs=0.01)

    def test_near_the_ends_it_stays_inside(self):
        y, scores = simulated((50, 40, 30), sep=6.0)
        scores[0] = -scores[0]
        for s in (scores, -scores):
            result = mauc_interval(y, s, level=0.999)
            assert 0 < result.low < result.score < result.high < 1


class TestComparison:
    @pytest.mark.parametrize(
        ("pairs", "weighted", "n_classes"), [("ovo", False, 2), ("ova", True, 3), ("ovo", True, 40)]
    )
    def test_equal_models(self, pairs, weighted, n_classes):
        y, a = simulated([3 + k % 5 for k in range(n_classes)], decimals=1)
        w = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
        ranked = np.stack([stats.rankdata(c, method="dense") for c in a.T], axis=1)
        for b in (a, a.copy()):
            assert compare_mauc(y, a, b, pairs=pairs, sample_weight=w) == Comparison(0.0, 0.0, 0.0, 0.0, 1.0)
        alike = compare_mauc(y, a, 4 * a, pairs=pairs, sample_weight=w)
        assert (alike.difference, alike.pvalue) == (0.0, 1.0)
        assert -0.6 < alike.low == -alike.high < 0 < alike.stderr, "they may differ on other samples"
        for b in (ranked, ranked**3.0, a.astype(np.float32)):
            assert compare_mauc(y, a, b, pairs=pairs, sample_weight=w) == alike

    def test_difference_is_that_of_the_scores(self):
        y, a, b = two_models()
        w = np.random.default_rng(1).exponential(size=len(y))
        for options in ({}, {"pairs": "ova"}, {"sample_weight": w}, {"pairs": np.arange(9).reshape(3, 3)}):
            result = compare_mauc(y, a, b, **options)
            assert result.difference == mauc_score(y, a, **options) - mauc_score(y, b, **options)

    def test_antisymmetric(self):
        y, a, b = two_models()
        there, back = compare_mauc(y, a, b), compare_mauc(y, b, a)
        assert there.difference > 0
        assert (back.difference, back.low, back.high) == (-there.difference, -there.high, -there.low)
        assert (back.stderr, back.pvalue) == (there.stderr, there.pvalue)

    @pytest.mark.slow
    @pytest.mark.parametrize("decimals", [None, 0])
    def test_two_classes_are_delong_in_large_samples(self, decimals):
        y, scores = simulated((4000, 1700), decimals=decimals)
        a = scores[:, 1]
        b = a + np.random.default_rng(1).normal(size=len(a))
        b = b if decimals is None else np.round(b, decimals)
        auc, s10, s01 = delong(y, a, b)
        contrast = np.array([1.0, -1.0])
        stderr = np.sqrt(contrast @ (s10 + s01) @ contrast)
        result = compare_mauc(y, a, np.column_stack([-b, b]), level=0.9)
        assert result.difference == pytest.approx(auc[0] - auc[1], abs=1e-14)
        assert result.stderr == pytest.approx(stderr, rel=2e-3)
        assert (result.high - result.low) / 2 == pytest.approx(stats.norm.ppf(0.95) * stderr, rel=2e-3)

    @pytest.mark.parametrize("counts", [(2, 2), (30, 20, 8), (2, 9, 1)])
    @pytest.mark.filterwarnings("ignore:class 2 has a single sample")
    def test_formula(self, counts):
        y, a, b = two_models(counts, seed=3)
        partition = ClassPartition(y, len(counts))
        v = partition.pair_weights("ovo")
        h = [definition(partition.problem(scores, v)) for scores in (a, b)]
        classes = range(len(counts))
        w = [v[i].sum() + v[:, i].sum() for i in classes]
        shares = [[x[y == i].mean() / w[i] for x in h] for i in classes]
        variances = [np.var((h[0] - h[1])[y == i], ddof=1) if counts[i] > 1 else 0.0 for i in classes]
        scores = [mauc_score(y, a), mauc_score(y, b)]
        spreads = []
        for k in range(2):
            own = [np.var(h[k][y == i], ddof=1) / w[i] ** 2 if counts[i] > 1 else 0.0 for i in classes]
            whole = sum((counts[i] - 1) * shares[i][k] * (1 - shares[i][k]) for i in classes)
            spreads.append(sum((counts[i] - 1) * own[i] for i in classes) / whole)
        parts = 2 * np.array(spreads) / sum(spreads)

        def unsure(both):
            return sum(part * p * (1 - p) for part, p in zip(parts, both, strict=True))

        m, freedom = effective_size(
            variances, counts, v, [0] * 3, [unsure(x) for x in shares], unsure(scores), 1 / 2, 1, 0
        )

        near = [(p * m + 1 / 4) / (m + 1 / 2) for p in scores]

        def variance(difference):
            """The likeliest scores with this difference, of Bernoulli samples of sizes 1 / parts."""
            apart = difference * m / (m + 1 / 2)

            def surprise(first):
                both = np.array([first, first - apart])
                return -np.sum((near * np.log(both) + (1 - np.array(near)) * np.log(1 - both)) / parts)

            ends = (max(0, apart) + 1e-12, min(1, 1 + apart) - 1e-12)
            first = optimize.minimize_scalar(surprise, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
            return unsure([first, first - apart]) / m

        result = compare_mauc(y, a, b, level=0.9)
        assert result.difference == scores[0] - scores[1]
        for end in (result.low, result.high):
            distance = stats.t.ppf(0.95, freedom) * np.sqrt(variance(end))
            assert abs(result.difference - end) == pytest.approx(distance, rel=1e-6)
        assert result.stderr == pytest.approx(np.sqrt(variance(result.difference)), rel=1e-6)
        t = abs(result.difference) / np.sqrt(variance(0.0))
        assert result.pvalue == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("weighted", [False, True])
    def test_stderr_against_the_bootstrap(self, weighted):
        y, a, b = two_models()
        w = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))

        def difference(rows):
            return np.subtract(*(mauc_score(y[rows], s[rows], sample_weight=w[rows]) for s in (a, b)))

        result = compare_mauc(y, a, b, sample_weight=w)
        assert result.stderr == pytest.approx(stratified_bootstrap(y, difference), rel=0.1)

    def test_pairing_helps(self):
        y, a, b = two_models()
        alone = np.hypot(mauc_interval(y, a).stderr, mauc_interval(y, b).stderr)
        assert compare_mauc(y, a, b).stderr < 0.9 * alone

    def test_interval_and_test_agree(self):
        y, a, b = two_models()
        p = compare_mauc(y, a, b).pvalue
        assert 0 < p < 0.05
        assert compare_mauc(y, a, b, level=1 - 0.99 * p).low < 0 < compare_mauc(y, a, b, level=1 - 1.01 * p).low

    def test_equal_weights_are_none_and_zero_ones_drop(self):
        y, a, b = two_models()
        assert_results(compare_mauc(y, a, b, sample_weight=np.full(len(y), 3.0)), compare_mauc(y, a, b), rtol=1e-10)
        kept = np.random.default_rng(1).random(len(y)) < 0.7
        dropped = compare_mauc(y[kept], a[kept], b[kept])
        assert_results(compare_mauc(y, a, b, sample_weight=kept), dropped, rtol=1e-10)

    def test_no_pair_left(self):
        with pytest.warns(UndefinedMetricWarning, match="undefined and returned as NaN") as record:
            result = compare_mauc([1, 1], [0.1, 0.2], [0.3, 0.4], absent="ignore")
        assert np.isnan(dataclasses.astuple(result)).all()
        assert [w.filename for w in record] == [__file__]

    def test_single_sample(self):
        y, a = ["owl", "cat", "owl", "cat", "fox"], np.random.default_rng(0).normal(size=(5, 3))
        with pytest.warns(UndefinedMetricWarning, match=r"class fox has a single sample") as record:
            result = compare_mauc(y, a, -a)
        assert result.difference == mauc_score(y, a) - mauc_score(y, -a)
        assert result.low < result.difference < result.high
        assert [w.filename for w in record] == [__file__]

    def test_four_rows_prove_little(self):
        y, right = [0, 0, 1, 1], np.array([0.0, 1.0, 2.0, 3.0])
        against = {name: compare_mauc(y, right, b) for name, b in (("wrong", -right), ("constant", 0 * right))}
        assert against["wrong"].difference == 1.0
        assert against["wrong"].low < 0.1
        assert 0.04 < against["wrong"].pvalue < against["constant"].pvalue < 0.3
        assert all(result.stderr > 0 for result in against.values())

    def test_perfect_against_constant(self):
        found = []
        for n in (2, 5, 2000):
            y = np.repeat([0, 1, 2], n)
            found.append(compare_mauc(y, np.eye(3)[y], np.zeros((3 * n, 3))))
            alone = mauc_interval(y, np.eye(3)[y])
            # Constant scores are certainly 1/2, so the uncertainty is that of the perfect ranking. Its interval is
            # wider, because it is shrunk by three samples, and a comparison by one.
            assert 0.6 < (0.5 - found[-1].low) / (1 - alone.low) < 2.1
        assert [result.difference for result in found] == [0.5] * 3
        assert all(result.low < 0.5 < result.high for result in found)
        p = [result.pvalue for result in found]
        assert 0 < p[2] < p[1] < 0.05 < p[0] < 0.2


class TestHiddenErrors:
    """A class of few rows that decides the interval while none of them shows an error."""

    @staticmethod
    def ranked(counts, *, wrong=0):
        """All rows right but ``wrong`` of the rarest class, which the last column puts below all others."""
        y = np.repeat(np.arange(len(counts)), counts)
        scores = np.eye(len(counts))[y] + 0.1 * np.random.default_rng(0).random((len(y), len(counts)))
        if wrong:
            scores[-wrong:, -1] = -1.0
        return y, scores

    @pytest.mark.parametrize("rows", [5, 12, 60])
    def test_noted(self, rows):
        report = multiclass_auc_report(*self.ranked((3000, 3000, rows)))
        assert f"Note: class 2 has {rows} test rows, none ranked low" in report

    @pytest.mark.parametrize(
        ("counts", "wrong"),
        [((500, 500, 12), 1), ((500, 500, 4), 0), ((500, 500, 61), 0), ((12, 12, 12), 0)],
        ids=["one is seen", "mostly common", "enough rows", "no class decides"],
    )
    def test_not_noted(self, counts, wrong):
        assert "Note" not in multiclass_auc_report(*self.ranked(counts, wrong=wrong))

    def test_rows_without_weight_do_not_count(self):
        y, scores = self.ranked((500, 500, 13), wrong=1)
        weight = np.ones(len(y))
        weight[-1] = 0.0
        assert "class 2 has 12 test rows" in multiclass_auc_report(y, scores, sample_weight=weight)
