import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ebql
from ebql.errors import InputError
from ebql.kept import table

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    header = "environment,agent,seed,step,return,bias,limit\n"
    rows = "W-v0,DQN,0,10,1,-0.5,\nW-v0,EBQL,1,10,2.5,,\n"
    (tmp_path / "evaluations.csv").write_text(header + rows)
    return tmp_path


def test_columns_have_types_and_missing_numbers_are_nan(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    columns = ebql.results(folder)
    assert list(columns) == ["environment", "agent", "seed", "step", "return", "bias", "limit"]
    assert columns["agent"].tolist() == ["DQN", "EBQL"]
    assert columns["step"].dtype == np.int64
    assert columns["return"].tolist() == [1.0, 2.5]
    assert np.isnan(columns["bias"][1])
    assert np.isnan(columns["limit"]).all()


def test_pandas_gets_the_same_columns(folder):
    pytest.importorskip("pandas")
    frame = ebql.results(str(folder))
    assert frame.groupby("agent")["return"].mean().to_dict() == {"DQN": 1.0, "EBQL": 2.5}
    assert list(frame) == ["environment", "agent", "seed", "step", "return", "bias", "limit"]


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(
        InputError, match="Unknown results 'minatr'. Did you mean 'minatar'. Known: .*minatar"
    ):
        ebql.results("minatr")


def test_a_table_that_is_none_is_refused(tmp_path):
    (tmp_path / "runs.csv").write_text("a,b\n1\n")
    with pytest.raises(InputError, match="Cannot read .* as a table"):
        ebql.results(tmp_path)


@pytest.mark.parametrize("name", ebql.results())
def test_every_kept_table_loads_and_has_rows(name):
    frame = ebql.results(name)
    assert len(frame["agent" if "agent" in frame else "environment"]) > 0


def test_the_wheel_has_every_table():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    tables = {path.relative_to(ROOT).as_posix() for path in table._shipped().values()}
    details = {
        (folder / name).relative_to(ROOT).as_posix()
        for folder in table.kept_folders()
        for name in ("provenance.csv", "provenance.json")
    }
    shipped = {source for source, place in included.items() if place.startswith("ebql/kept/")}
    assert shipped == tables | details
    assert all(included[source] == f"ebql/kept/{source}" for source in shipped)
