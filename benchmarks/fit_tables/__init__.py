"""`mauc fit` with its defaults against random forest and histogram gradient boosting, on public tables."""
