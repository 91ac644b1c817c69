"""`ebql export`: an agent as an ONNX file."""

from pathlib import Path

import tyro

from ebql.cli.importing import Imports, import_named
from ebql.terminal.console import Console


def export(
    path: tyro.conf.Positional[Path],
    out: Path | None = None,
    action_masks: bool = False,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Export a trained agent as an ONNX file, which runs without this package.

    The file maps observations to the members' values and to the greedy action.

    Args:
        path: A run folder, or a saved agent.
        out: The file to write; by default the name of the run or agent, with .onnx, in this folder.
        action_masks: Add an input for the legal actions.
        accept_changes: Export even though files of the run or agent were changed by hand.
        imports: Import this module first, which may register agents of your own; can be repeated.
    """
    import_named(imports)
    from ebql.cli.commands.train import agent_types

    kinds = agent_types()
    from ebql.deep.saving import load
    from ebql.deep.sharing.onnx_graph import require_onnx

    require_onnx()
    about, _ = load(path, accept_changes=accept_changes)
    agent = kinds[about["agent"]].load(path, accept_changes=accept_changes)
    name = path.resolve().name.removesuffix(".safetensors")
    written = agent.export(out or Path(f"{name}.onnx"), action_masks=action_masks)
    Console(stderr=True).print(f"→ {written}", highlight=False, markup=False, soft_wrap=True)
