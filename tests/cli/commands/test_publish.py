"""`ebql publish`, called as a person would."""

from ebql.cli import main
from ebql.deep.agents import EBQL


def test_a_run_becomes_a_folder_that_can_be_loaded(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    EBQL("CartPole-v1", ensemble_size=2, hidden=(4,), evaluation_period=0).learn(20, out="run")
    assert main(["publish", "run", "--to", "./hub", "--episodes", "2"]) == 0
    names = {path.name for path in (tmp_path / "hub").iterdir()}
    assert names == {"agent.safetensors", "config.json", "results.json", "README.md", "replay.mp4"}
    assert EBQL.from_hub("hub").steps == 20
    assert "The folder './hub' is not empty" in refused(["publish", "run", "--to", "./hub"])
    assert "There is no" in refused(["publish", "nowhere", "--to", "./other"])
    assert not (tmp_path / "other").exists()
