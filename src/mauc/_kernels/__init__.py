"""Arrays in, arrays out: nothing here checks its input and nothing here imports more than NumPy."""
