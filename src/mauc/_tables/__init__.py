"""Turn a table into a tested model, and save it.

text, formats → read → columns → data → training → fit → model_file, saved_scores; parts and scores: tables of scores
"""

from mauc._lazy import spare_home

spare_home()
