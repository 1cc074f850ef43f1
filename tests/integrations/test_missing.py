"""What is said where the tool is not installed."""

import subprocess
import sys


def test_optuna_is_asked_for_when_an_objective_is_made():
    """In another process: modules that other tests have imported stay as they are."""
    code = (
        "import sys; sys.modules['optuna'] = None; from mauc.integrations import optuna_objective\n"
        "try: optuna_objective(None, [[0]], [0], None)\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "optuna_objective needs optuna, which is not installed: pip install optuna"
