import csv

import pytest

from ebql.analysis.table_summary import summarise
from ebql.estimators.intervals import over_seeds
from ebql.studies.definition import parse_study
from ebql.studies.plan import plan
from ebql.studies.tables.runs import MEASURES, learn_tables, read_seed_curves

STUDY = """
kind = "tabular"
environments = ["ebql/MetaChain-v0"]
seeds = 5
episodes = 60
record_every = 25
epsilon = 0.3
[[agent]]
name = "ebql"
ensemble_size = 3
"""


def test_the_summary_has_means_with_intervals(tmp_path):
    study = parse_study(STUDY, "the study")
    out = tmp_path / "out"
    learn_tables(study.runs[0], plan(study, out)[0].folder, 2)
    summarise(plan(study, out), out)
    with (out / "summary.csv").open() as file:
        rows = {(row["metric"], row["average"]): row for row in csv.DictReader(file)}
    assert len(rows) == 2 * len(MEASURES)
    values = read_seed_curves(plan(study, out)[0].folder).metrics["bias"]
    mean, half = over_seeds(values.mean(1))
    row = rows["bias", "whole run"]
    assert (row["environment"], row["agent"], row["seeds"]) == ("ebql/MetaChain-v0", "ebql", "5")
    assert float(row["mean"]) == pytest.approx(mean, rel=1e-8)
    assert float(row["high"]) == pytest.approx(mean + half, rel=1e-8)
    mean, half = over_seeds(values[:, -1])
    assert float(rows["bias", "end"]["low"]) == pytest.approx(mean - half, rel=1e-8)
    with (out / "curves.csv").open() as file:
        curve = [row for row in csv.DictReader(file) if row["metric"] == "correct"]
    assert [row["episode"] for row in curve] == ["25", "50", "60"]
