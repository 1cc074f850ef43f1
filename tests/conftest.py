"""Hypothesis: the same examples on every run and every machine; new ones each time under ``make fuzz``.

No deadline: a slow machine is not a bug.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mauc",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore",
    parent=settings.get_profile("mauc"),
    derandomize=False,
    max_examples=500,
    print_blob=True,
)
settings.load_profile(os.environ.get("MAUC_HYPOTHESIS", "mauc"))
