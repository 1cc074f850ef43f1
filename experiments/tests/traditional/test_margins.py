"""Margins over the paper's competitors."""

from experiments.traditional import run as traditional
from experiments.traditional.margins import margins


def test_margins_over_all_competitors():
    ours = {f"MAUC {loss}": {"balance": 90.0 + k} for k, loss in enumerate(traditional.LOSSES)}
    others = {"LR, C=1": 80.0, "MM, C=1": 85.0, "LR, tuned": 91.5, "MM, tuned": 88.0, "LR-balanced, tuned": 91.0}
    means = ours | {name: {"balance": score} for name, score in others.items()} | {"chosen": {"balance": 91.0}}
    rows = margins(means, ["balance"], ["LR", "MM"], "chosen", "80-10-10").splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["+5.30", "+12.00", "+7.00", "+0.50", "+0.00"]
