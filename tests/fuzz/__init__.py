"""The differential campaign: random hostile problems, each answered twice, by the library and by a plain definition.

``make fuzz`` runs it, ``make fuzz CASES=1000000`` the long one; ``python -m fuzz --part metric --only 17`` repeats one
case. A part is a function of a random generator that raises ``AssertionError`` where the two answers differ.
"""
