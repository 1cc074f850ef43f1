"""Speed and memory against peers, as ratios from one run, with the error beside the time."""
