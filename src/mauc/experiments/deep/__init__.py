"""Neural networks on the paper's three image and user sets, real or simulated (Tables 2 to 4)."""
