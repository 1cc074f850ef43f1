"""The paper's experiments and ours: one package or file for each table or figure, listed in :mod:`.registry`.

``mauc bench NAME`` runs one of them and ``mauc demo`` runs :mod:`.demo`, so all of this is installed with ``mauc``.
What an experiment needs beyond that, the command says in one line before it computes anything. Results go to disk as
they come and are never computed twice (:mod:`.store`).

Shared: :mod:`.tuning` (a grid, chosen on the validation part), :mod:`.score_tables` and :mod:`.statistics` (many
methods on many sets), :mod:`.report_parts` and :mod:`.plots` (how pages and figures look).
"""
