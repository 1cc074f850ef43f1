"""``python -m mauc`` is the command ``mauc``."""

from mauc._cli import main

main()
