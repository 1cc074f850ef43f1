"""The paper's experiments and ours: one package or file for each table or figure, listed in :mod:`.registry`.

``python -m experiments NAME`` runs one of them. None of this is installed with ``mauc``, which imports none of it.
What an experiment needs beyond that, the command says in one line before it computes anything. Results go to disk as
they come and are never computed twice (:mod:`.store`).

Shared: :mod:`.tuning` (a grid, chosen on the validation part), :mod:`.score_tables` and :mod:`.statistics` (many
methods on many sets), :mod:`.report_parts` and :mod:`.plots` (how pages and figures look).
"""
