import json

from huggingface_hub import ModelCard

from ebql.deep.agents import EBQL
from ebql.report.publishing import write_hub_folder


def test_the_hubs_own_reader_understands_the_card(tmp_path):
    agent = EBQL("ebql/ProbeOneStep-v0", ensemble_size=3, hidden=(4,))
    write_hub_folder(tmp_path / "out", agent, agent._about(), agent.evaluate(5, seed=0), "somebody/something")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"agent.safetensors", "config.json", "results.json", "README.md"}
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert card.data.library_name == "ebql"
    (result,) = card.data.eval_results
    assert (result.dataset_type, result.metric_type) == ("ebql/ProbeOneStep-v0", "mean_reward")
    assert result.metric_value == "1.00 +/- 0.00"  # the probe pays 1 whatever one does
    assert 'EBQL.from_hub("somebody/something")' in card.text
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["evaluation/return"] == 1
    assert json.loads((tmp_path / "out" / "config.json").read_text())["options"]["ensemble_size"] == 3
