"""The work behind the command ``mauc``: one module a command, and what they share.

tables.py → features.py, holdout.py → models.py → model_file.py     (fit.py, predict.py)
tables.py → scores.py → mauc.report                                 (evaluate.py)
app.py, output.py, errors.py, files.py                              (all of them)
"""
