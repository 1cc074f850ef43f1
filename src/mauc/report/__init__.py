"""Judge models by multiclass AUC: numbers, and one HTML page.

true classes + scores of one model or several
    →  judge (judgement.py): multiclass AUC with intervals, paired tests, weakest pairs
       judge_rows: the same for scores that are read in parts; both use a ScoreSummary (mauc.metrics.summary)
       further.py: classes, predicted classes and calibration
       advice.py: what the numbers mean, and what to do next
    →  pair_data (pairs.py), class_data (class_data.py): data that the page draws, in a bounded number of bytes
    →  render (page.py): one HTML file that works offline; numbers.py: the same as JSON and tables
    →  Report (report.py): all of it as one object, for notebooks
"""

from mauc.report.judgement import Judgement, ModelScore, PairScore, judge
from mauc.report.page import render
from mauc.report.report import Report

__all__ = ["Judgement", "ModelScore", "PairScore", "Report", "judge", "render"]
