"""A trained agent as a folder in the layout of the Hugging Face Hub: weights, config, results, model card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ebql.deep.agent import Agent
from ebql.deep.evaluation.evaluation import Evaluation
from ebql.deep.sharing.hub import WEIGHTS, require_hub
from ebql.runs import output_folder, provenance, write_json, write_text
from ebql.runs.metric_names import EVALUATION_EPISODES, EVALUATION_RETURN, EVALUATION_RETURN_STD

FILM = "replay.mp4"  # the name that the Hub shows as a preview


def write_hub_folder(
    folder: Path, agent: Agent, about: Mapping[str, Any], evaluation: Evaluation, name: str
) -> None:
    """Write everything but the film. `about` describes the agent, `name` is the title of the card."""
    require_hub()
    output_folder(folder)
    results = evaluation.to_json()
    card = model_card(name, about, results, agent.steps)
    agent.save(folder / WEIGHTS)
    made_by = provenance()
    write_json(folder / "config.json", {**about, "made_by": made_by})
    write_json(folder / "results.json", {"trained_steps": agent.steps, **results, "made_by": made_by})
    write_text(folder / "README.md", card)


def model_card(name: str, about: Mapping[str, Any], results: Mapping[str, Any], steps: int) -> str:
    """Return the model card: metadata that the Hub reads, and what a person should know.

    `about` is the description of the agent, `results` are those of `Evaluation.to_json`.
    """
    from huggingface_hub import EvalResult, ModelCardData

    environment, agent = str(about["environment"]), str(about["agent"])
    score = f"{results[EVALUATION_RETURN]:.2f} +/- {results[EVALUATION_RETURN_STD]:.2f}"
    metadata = ModelCardData(
        model_name=name,
        library_name="ebql",
        tags=["reinforcement-learning", "deep-reinforcement-learning", "ebql", agent, environment],
        eval_results=[
            EvalResult(
                task_type="reinforcement-learning",
                task_name="reinforcement-learning",
                dataset_type=environment,
                dataset_name=environment,
                metric_type="mean_reward",
                metric_name="mean return",
                metric_value=score,
            )
        ],
    )
    rows = "\n".join(f"| {name} | {value} |" for name, value in _facts(about, results, steps).items())
    kind = _class_name(agent)
    return f"""---
{metadata.to_yaml()}
---

# {name}

An agent of [ebql](https://pypi.org/project/ebql/), trained on {environment}.

| | |
|---|---|
{rows}

The bias is what the agent expects minus what its greedy policy earns; positive means that it overestimates.

```python
from ebql import {kind}

agent = {kind}.from_hub("{name}")
action, _ = agent.predict(observation, deterministic=True)
```

Loading runs no code from this repository. `config.json` has every option, `results.json` the evaluation.
"""


def _facts(about: Mapping[str, Any], results: Mapping[str, Any], steps: int) -> dict[str, str]:
    options = about["options"]
    facts = {"agent": str(about["agent"]), "agent steps": f"{steps:,}", "seed": str(options.get("seed"))}
    if "ensemble_size" in options:
        facts["members"] = str(options["ensemble_size"])
    episodes = results[EVALUATION_EPISODES]
    facts["return"] = (
        f"{results[EVALUATION_RETURN]:.2f} (standard deviation {results[EVALUATION_RETURN_STD]:.2f}, "
        f"{episodes} episodes)"
    )
    bias, error = results.get("bias/mean"), results.get("bias/standard_error")
    if bias is not None:
        precision = f" (standard error {error:.3g})" if error is not None else ""
        facts["bias"] = f"{bias:+.3g}{precision}, measured as `{results['bias/method']}`"
    return facts


def _class_name(agent: str) -> str:
    from ebql.deep.agents import AGENTS

    return AGENTS[agent].__name__
