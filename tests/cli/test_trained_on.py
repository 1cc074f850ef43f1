"""Rows that a model was trained on: ``mauc predict`` and ``mauc evaluate`` say how many there are."""

import pandas as pd
from sklearn.datasets import load_wine


def test_rows_that_were_trained_on_are_named(run, tmp_path, monkeypatch, small_stack):
    monkeypatch.chdir(tmp_path)
    frame = load_wine(as_frame=True).frame
    frame.to_csv("wine.csv", index=False)
    assert run("fit", "wine.csv", "--target", "target", "--no-report", "--no-importance").exit_code == 0
    result = run("predict", "model.skops", "wine.csv")
    assert "133 of these 178 rows were training rows" in result.stderr
    scores = pd.read_csv("scores.csv")
    assert scores["trained_on"].value_counts().to_dict() == {"yes": 133, "no": 45}
    result = run("evaluate", "scores.csv", "--target", "target", "--no-report")
    assert result.exit_code == 0, result.output
    assert "133 of these 178 rows were training rows" in result.stderr

    frame.assign(ash=frame["ash"] + 1e-3).to_csv("others.csv", index=False)
    result = run("predict", "model.skops", "others.csv")
    assert "training rows" not in result.stderr
    assert "trained_on" not in pd.read_csv("scores.csv")
