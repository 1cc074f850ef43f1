"""What wins on real tables: our models, scikit-learn's and the samplers, over many sets."""
