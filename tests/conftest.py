"""The same examples on every run and every machine, and no deadline: a slow machine is not a bug."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mauc",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mauc")
