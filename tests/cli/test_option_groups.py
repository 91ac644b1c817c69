"""Every option of every agent is shown once, in one of the help's groups, and comes back as it was given."""

import re
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest

from ebql.cli import main
from ebql.cli.commands.train import Train
from ebql.cli.option_groups import GROUPS, flattened, group_of, grouped, options_of, titled_by_group
from ebql.deep.config.agents import CONFIGS, EBQLConfig
from ebql.deep.config.base import AgentConfig, EnsembleConfig

BOX = re.compile(r"╭─ (.*?) ─+╮\n(.*?)╰", flags=re.S)


def boxes(capfd, *words):
    with pytest.raises(SystemExit) as stop:
        main(["train", *words, "--help"])
    assert stop.value.code == 0
    return dict(BOX.findall(capfd.readouterr().out))


def options(box):
    """Return the options in a box by their names in Python, where `import` and `from` are keywords."""
    flags = re.findall(r"^│ --([a-z-]+)", box, flags=re.M)
    keywords = {"import": "imports", "from": "learn_from"}
    return [keywords.get(flag, flag.replace("-", "_")) for flag in flags]


@pytest.mark.parametrize("agent", CONFIGS)
def test_help_shows_every_option_once_in_its_group(capfd, agent):
    shown = boxes(capfd, "--agent", agent)
    titles = [title for title in GROUPS if title != "Ensemble" or issubclass(CONFIGS[agent], EnsembleConfig)]
    assert list(shown) == ["positional arguments", *titles]
    listed = [option for title in titles for option in options(shown[title])]
    known = [f.name for kind in (CONFIGS[agent], Train) for f in fields(kind) if f.name != "environment"]
    assert sorted(listed) == sorted(known)
    for title in titles:
        for option in options(shown[title]):
            assert group_of(option, CONFIGS[agent]) == title


def test_options_that_all_agents_share_have_an_entry_and_only_one():
    listed = [name for names in GROUPS.values() for name in names.split()]
    shared = {f.name for kind in (EnsembleConfig, Train) for f in fields(kind)}
    assert len(listed) == len(set(listed))
    assert shared <= set(listed)
    everything = {f.name for kind in (*CONFIGS.values(), Train) for f in fields(kind)}
    assert set(listed) <= everything


def test_the_options_of_a_new_rule_need_no_entry():
    @dataclass(frozen=True, kw_only=True)
    class Single(AgentConfig):
        name: ClassVar[str] = "single"
        temper: float = 1.0
        """How much."""

    @dataclass(frozen=True, kw_only=True)
    class Several(EnsembleConfig):
        name: ClassVar[str] = "several"
        temper: float = 1.0
        """How much."""

    assert group_of("temper", Single) == "Learning"
    assert group_of("temper", Several) == "Ensemble"
    options = options_of(Several, vars(Several()))
    assert next(option.help for option in options if option.name == "temper") == "How much."
    assert flattened(grouped(options, Several)()) == Several().to_json()


def test_help_has_the_texts_and_defaults_of_the_agent(capfd):
    shown = boxes(capfd, "--agent", "rainbow", "--preset", "plain")
    ensemble, network = (" ".join(shown[title].replace("│", "").split()) for title in ("Ensemble", "Network"))
    assert "one selects and the others evaluate, as in EBQL. (default: 1)" in ensemble  # not EBQL's own text
    assert "--hidden [INT [INT ...]]" in network
    assert "ENV" in shown["positional arguments"]
    assert "STR" not in shown["positional arguments"]
    assert "--help" in shown["Essentials"]


def test_flattened_options_are_those_of_the_preset():
    preset = EBQLConfig(ensemble_size=7, hidden=(3,), atoms=None)
    assert flattened(grouped(options_of(EBQLConfig, vars(preset)), EBQLConfig)()) == preset.to_json()


def test_titles_change_in_colour_too_and_lines_keep_their_width(capsys):
    dim, end = "\x1b[37;2m", "\x1b[0m"
    coloured = f"{dim}╭{end}{dim}─{end} {dim}Network{end}{dim} options{end} {dim}────╮"
    with titled_by_group():
        print("╭─ options ────────╮╭─ Network options ─╮", coloured, "text about ─ options ─", sep="\n")
    plain, drawn, text = capsys.readouterr().out.splitlines()
    assert plain == "╭─ Essentials ─────╮╭─ Network ─────────╮"
    assert re.sub(r"\x1b\[[0-9;]*m", "", drawn) == "╭─ Network ────────────╮"
    assert text == "text about ─ options ─"


def test_titles_change_where_no_frame_can_be_drawn(capsys):
    with titled_by_group():
        print(" options   \n -------\n", " Rainbow's parts options  \n", " other options\n", sep="")
    assert capsys.readouterr().out == " Essentials\n -------\n Rainbow's parts\n other options\n\n"
