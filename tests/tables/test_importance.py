"""Importance fits its seconds by fewer shuffles, rows and columns."""

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.importance import NO_TIME, importance_within

CLASSES = np.array(["a", "b"])


def table_of(n=3000, d=6):
    rng = np.random.default_rng(0)
    labels = rng.choice(CLASSES, n)
    X = rng.normal(size=(n, d))
    X[:, -1] += 2 * (labels == "b")  # so far apart that 99 rows tell it from the other columns
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(d)]), labels


class Model:
    """Scores by the last column; a prediction takes a second and a millisecond for each row, by its own clock."""

    def __init__(self):
        self.now, self.rows = 0.0, []

    def __call__(self, table):
        self.now += 1.0 + len(table) / 1000
        self.rows.append(len(table))
        return np.column_stack([-table["x5"], table["x5"]])

    def clock(self):
        return self.now


def run(planned):
    model = Model()
    table, labels = table_of()
    found, how = importance_within(planned / 0.8, model, table, labels, CLASSES, clock=model.clock)
    return found, how, model


@pytest.mark.parametrize(
    ("seconds", "how"),
    [
        (1000, "each column shuffled 5 times among 1999 test rows"),
        (30, "each column shuffled once among 1999 test rows; a longer time limit allows more"),
        (12, "each column shuffled once among 499 test rows; a longer time limit allows more"),
        (8, "each column shuffled once among 99 test rows; a longer time limit allows more"),
    ],
)
def test_rows_and_shuffles_fit_the_seconds(seconds, how):
    found, said, model = run(seconds)
    assert said.startswith(how[:20])
    assert said.split(" among ")[0] == how.split(" among ")[0]
    assert said.endswith(how.split(" among ")[1].split(" ", 1)[1])
    assert len(found) == 6
    assert found[0].column == "x5"
    assert found[0].drop > 0.1
    assert all(each.drop == each.stderr == 0.0 for each in found[1:]), "the model does not use them"
    assert model.now <= seconds + 6.5, "the predictions that measure come on top"


def test_few_seconds_keep_the_columns_that_predict_best():
    found, said, _ = run(5)
    assert found[0].column == "x5"
    assert len(found) == 4
    assert said.startswith("the 4 of 6 columns that predict best alone, each shuffled once among ")
    assert run(0.001)[:2] == ([], NO_TIME)


def test_one_class():
    table, _ = table_of(50)
    found, said = importance_within(9, Model(), table, np.full(50, "a"), CLASSES)
    assert (found, said) == ([], "no permutation importance: the test rows are of one class")
