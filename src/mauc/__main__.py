"""``python -m mauc`` is the command ``mauc``."""

from mauc.cli import main

main()
