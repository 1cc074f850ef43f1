"""Experiments beside the package: what the pages under ``docs/results`` were computed with. Not installed."""
