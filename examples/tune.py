"""Search for good options with Optuna, as `ebql tune` does.

python tune.py [STEPS]
"""

import sys
from pathlib import Path

from ebql.cli import main

SPACE = """
learning_rate = { low = 1e-4, high = 1e-2, log = true }
ensemble_size = { low = 2, high = 5 }
hidden = [[32], [64, 64]]
"""

if __name__ == "__main__":  # the search starts processes, which import this file again
    steps = sys.argv[1] if len(sys.argv) > 1 else "20000"
    Path("space.toml").write_text(SPACE)
    # Repeat the command to continue the search, or with more trials to extend it.
    options = {"--space": "space.toml", "--trials": "3", "--steps": steps, "--out": "search"}
    if main(["tune", "CartPole-v1", *(word for pair in options.items() for word in pair)]):
        sys.exit("the search failed")
    print(Path("search/trials.csv").read_text())
    print("A study that compares the best options with the defaults, on seeds that no trial used:")
    print(Path("search/best.toml").read_text())
