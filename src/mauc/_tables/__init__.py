"""From a file to a tested model.

text, formats → read → columns → data → training → fit → model_file, saved_scores; parts and scores: tables of scores
"""

from mauc._lazy import spare_home

spare_home()
