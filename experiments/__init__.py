"""The paper's experiments and ours: one package or file for each table or figure, listed in :mod:`.registry`.

``python -m experiments NAME`` runs one of them. None of this is installed with ``mauc``, which imports none of it.
Results go to disk as they come and are never computed twice (:mod:`.store`).
"""
