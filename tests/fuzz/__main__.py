"""``python -m fuzz --cases 10000``."""

import os
import sys

# One thread of linear algebra per process; set before NumPy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from fuzz.campaign import main

if __name__ == "__main__":
    sys.exit(main())
