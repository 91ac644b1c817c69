"""What rliable says of score matrices; runs in an environment of its own, and speaks JSON.

Reads {"matrices": [(runs, tasks) ...], "thresholds": [...], "replicates": n} from stdin, and writes a point
estimate and an interval for each statistic of each matrix, and of each matrix against the next.
"""

import json
import sys

import numpy as np
from rliable import library, metrics

STATISTICS = {
    "iqm": metrics.aggregate_iqm,
    "mean": metrics.aggregate_mean,
    "median": metrics.aggregate_median,
    "optimality_gap": metrics.aggregate_optimality_gap,
}


def estimates(scores, function, replicates):
    points, intervals = library.get_interval_estimates({"it": scores}, function, reps=replicates)
    return [float(points["it"]), *np.ravel(intervals["it"]).tolist()]


def main():
    asked = json.load(sys.stdin)
    matrices = [np.array(matrix) for matrix in asked["matrices"]]
    thresholds, replicates = np.array(asked["thresholds"]), asked["replicates"]
    np.random.seed(0)  # noqa: NPY002 - the generator that rliable draws from
    answers = []
    for i, matrix in enumerate(matrices):
        other = matrices[(i + 1) % len(matrices)]
        profiles, bands = library.create_performance_profile({"it": matrix}, thresholds, reps=replicates)
        answers.append(
            {
                **{name: estimates(matrix, function, replicates) for name, function in STATISTICS.items()},
                "improvement": estimates([matrix, other], metrics.probability_of_improvement, replicates),
                "profile": [profiles["it"].tolist(), *bands["it"].tolist()],
            }
        )
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
