"""`mauc fit` with its defaults against scikit-learn's random forest and histogram gradient boosting, on public tables."""
