"""Linear models on the paper's nine tables with the authors' splits (Figures 1 and 2)."""
