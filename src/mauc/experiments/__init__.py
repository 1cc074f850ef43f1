"""The paper's experiments and ours: one package or file for each table or figure.

Results go to disk as they come and are never computed twice.
"""
