"""`ebql export`: an agent as an ONNX file."""

from pathlib import Path

import tyro

from ebql.terminal.console import Console


def export(path: tyro.conf.Positional[Path], out: Path | None = None, action_masks: bool = False) -> None:
    """Export a trained agent as an ONNX file, which runs without this package.

    The file maps observations to the members' values and to the greedy action.

    Args:
        path: A run folder, or a saved agent.
        out: The file to write; by default the name of the run or agent, with .onnx, in this folder.
        action_masks: Add an input for the legal actions.
    """
    from ebql.cli.commands.train import agent_types

    kinds = agent_types()
    from ebql.deep.saving import load
    from ebql.deep.sharing.onnx_graph import require_onnx

    require_onnx()
    about, _ = load(path)
    agent = kinds[about["agent"]].load(path)
    written = agent.export(out or Path(f"{path.resolve().stem}.onnx"), action_masks=action_masks)
    Console(stderr=True).print(f"→ {written}", highlight=False, markup=False, soft_wrap=True)
