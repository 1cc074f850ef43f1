"""What a model is worth, as numbers and as one page to show.

true classes + scores of one model or several
    →  judge (judgement.py): multiclass AUC with intervals, paired tests, the pairs to look at, what class sizes cost
       (streamed.py: the same of scores that are read in parts)
    →  pair_data (pairs.py): every pair's AUC, score histograms and ROC, in a bounded number of bytes
    →  build_report (page.py): one HTML file that needs no network
"""

from mauc.report.judgement import Judgement, ModelScore, PairedTest, PairScore, judge
from mauc.report.page import build_report, render

__all__ = ["Judgement", "ModelScore", "PairScore", "PairedTest", "build_report", "judge", "render"]
