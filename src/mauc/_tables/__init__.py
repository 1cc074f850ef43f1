"""From a file to a fitted model.

read.py → features.py, holdout.py → models.py → model_file.py
read.py → scores.py
parts.py → score_parts.py: tables in parts, which are read in batches
"""

from mauc._lazy import spare_home

spare_home()
