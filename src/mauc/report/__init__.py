"""What a model is worth, as numbers and as one page to show.

true classes + scores of one model or several
    →  judge (judgement.py): multiclass AUC with intervals, paired tests, the pairs to look at, what class sizes cost
       (streamed.py: the same of scores that are read in parts)
       further.py: classes (by_class.py), who is taken for whom (decisions.py), calibration.py, what would help
       (collect.py)
    →  pair_data (pairs.py), class_data (class_data.py): what the page draws, in a bounded number of bytes
    →  render, build_report (page.py): one HTML file that needs no network; numbers.py: the same as JSON and tables
    →  Report (report.py): all of it as one object, for notebooks
"""

from mauc.report.judgement import Judgement, ModelScore, PairedTest, PairScore, judge
from mauc.report.page import build_report, render
from mauc.report.report import Report

__all__ = ["Judgement", "ModelScore", "PairScore", "PairedTest", "Report", "build_report", "judge", "render"]
