from pathlib import Path

import pytest

from ebql.deep.config.presets import PRESETS
from ebql.errors import InputError, UserError
from ebql.studies.definition import parse_study, read_study

RESULTS = Path(__file__).parents[2] / "results"
SHORT = """
agents = ["dqn", "double-dqn", "ebql"]
environments = ["CartPole-v1", "ebql/MetaChain-v0"]
seeds = [0, 7]
steps = 500_000
"""


@pytest.fixture
def study(tmp_path):
    def read(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return read_study(path)

    return read


def test_every_combination_is_a_run_and_the_first_seed_comes_first(study):
    found = study(SHORT)
    assert [run.name for run in found.runs] == [
        f"{environment}_{agent}_{seed}"
        for seed in (0, 7)
        for environment in ("CartPole-v1", "ebql-MetaChain-v0")
        for agent in ("dqn", "double-dqn", "ebql")
    ]
    run = found.runs[6]
    assert (run.agent, run.environment, run.seeds, run.length) == ("dqn", "CartPole-v1", (7,), 500_000)
    assert run.options["seed"] == 7
    assert run.preset == "cartpole"
    assert run.options["hidden"] == list(PRESETS["cartpole"]["hidden"])
    assert "ensemble_size" not in run.options
    assert (found.resources.cpus, found.resources.gpus, found.resources.retries) == (1, 0, 3)


def test_blocks_of_updates_are_an_option_of_studies(study):
    found = study(SHORT.replace("steps = ", "update_period = 16\nupdates_per_period = 8\nsteps = ", 1))
    assert {run.options["updates_per_period"] for run in found.runs} == {8}


def test_options_are_for_all_who_know_them_and_a_table_wins(study):
    found = study("""
        agents = ["dqn"]
        environments = ["CartPole-v1"]
        seeds = 2
        steps = 10
        preset = "plain"
        ensemble_size = 3
        learning_rate = 0.01
        threads = 2
        gpus = 0.5
        evaluation = { period = 50, episodes = 4 }
        [[agent]]
        name = "ebql"
        label = "EBQL 3"
        [[agent]]
        name = "ebql"
        label = "EBQL (10) slow"
        ensemble_size = 10
        learning_rate = 1e-5
        preset = "minatar"
        evaluation = { period = 60 }
    """)
    dqn, three, ten = found.runs[:3]
    assert [run.name for run in found.runs[3:]] == [
        "CartPole-v1_dqn_1",
        "CartPole-v1_ebql-3_1",
        "CartPole-v1_ebql-10-slow_1",
    ]
    assert (three.options["ensemble_size"], ten.options["ensemble_size"]) == (3, 10)
    assert [run.options["learning_rate"] for run in (dqn, three, ten)] == [0.01, 0.01, 1e-5]
    assert [run.options["evaluation_period"] for run in (dqn, three, ten)] == [50, 50, 60]
    assert [run.options["evaluation_episodes"] for run in (dqn, three, ten)] == [4, 4, 4]
    assert (three.preset, ten.preset) == ("plain", "minatar")
    assert ten.options["hidden"] == [128]
    assert (found.resources.cpus, found.resources.gpus) == (2, 0.5)


def test_tables_take_all_seeds_in_one_run(study):
    found = study("""
        kind = "tabular"
        environments = ["ebql/MetaChain-v0", "FrozenLake-v1"]
        seeds = 1_000
        episodes = 5_000
        epsilon = { start = 1, end = 0.1, episodes = 100 }
        discount = 0.9
        agents = ["q-learning", "double-q-learning"]
        [[agent]]
        name = "ebql"
        label = "EBQL 15"
        ensemble_size = 15
        discount = 0.95
    """)
    assert len(found.runs) == 6
    run = found.runs[2]
    assert run.name == "ebql-MetaChain-v0_ebql-15_all-seeds"
    assert (run.length, run.unit, run.seeds[-1]) == (1000, "seeds", 999)
    assert run.options == {
        "ensemble_size": 15,
        "split": 1,
        "epsilon": {"start": 1, "end": 0.1, "episodes": 100},
        "learning_rate": {"power": 0.8},
        "discount": 0.95,
        "max_steps": 1_000,
        "record_every": 50,
        "episodes": 5_000,
    }
    assert found.runs[1].options["turn"] == "random"


DEEP = 'agents = ["dqn"]\nenvironments = ["CartPole-v1"]\nseeds = 2\nsteps = 10\n'
TABLES = 'kind = "tabular"\nagents = ["q-learning"]\n'
TABLES += 'environments = ["ebql/MetaChain-v0"]\nseeds = 2\nepisodes = 9\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents = [", "is not valid TOML"),
        (DEEP.replace("seeds = 2", f"seeds = {2**62}"), "seeds must be at most 1,000,000, not"),
        (DEEP.replace("steps = 10", f"steps = {2**70}"), "steps must be at most 1,000,000,000,000,000, not"),
        (TABLES.replace("episodes = 9", f"episodes = {2**70}"), "episodes must be at most 10,000,000, not"),
        ("agents = " + "[" * 50_000 + "]" * 50_000, "is nested too deeply"),
        (DEEP + "enviroments = []", "Unknown key of the study 'enviroments'. Did you mean 'environments'?"),
        (DEEP + "seed = 1", "Unknown key of the study 'seed'. Did you mean 'seeds'?"),
        (DEEP + "ensemble_size = 5", "Unknown key of the study 'ensemble_size'"),  # no agent here knows it
        (DEEP + '[[agent]]\nname = "ebql"\nensemble_sise = 5', "Did you mean 'ensemble_size'?"),
        (DEEP + '[[agent]]\nname = "dqn"\nensemble_size = 5', "Unknown option of dqn 'ensemble_size'"),
        (DEEP + '[[agent]]\nname = "ebql"\ncpus = 5', "put it above the first [[agent]]"),
        (DEEP + '[[agent]]\nlabel = "x"', "Every [[agent]] needs the name of its agent"),
        (DEEP + '[[agent]]\nname = "dqn"', "the label 'dqn' twice"),
        (DEEP + '[[agent]]\nname = "dqn"\nlabel = "D.Q.N"', "'D.Q.N' and 'dqn' have the same options"),
        (DEEP + '[[agent]]\nname = "ebql"\nlabel = "…"', "A label needs a letter or a digit"),
        (DEEP + '[[agent]]\nname = "ebql"\nensemble_size = 1', "EBQL needs ensemble-size ≥ 2"),
        (DEEP + "learning_rate = -1", "learning-rate must be positive"),
        (DEEP + 'learning_rate = "fast"', "learning-rate must be a number"),
        (DEEP + 'preset = "minatari"', "Did you mean 'minatar'?"),
        (DEEP + '[[agent]]\nname = "rainbow"\npreset = "minatar"', "use minatar-rainbow"),
        (DEEP + '[[agent]]\nname = "rainbow"\nnoisy = false', "would never explore"),
        (DEEP + "evaluation = { periods = 5 }", "Did you mean 'period'?"),
        (DEEP + "evaluation = 5", "evaluation must be a table"),
        (DEEP + "cpus = 0", "cpus must be at least 1"),
        (DEEP + "gpus = -1", "gpus must be a number of GPUs"),
        (DEEP + 'kind = "deeep"', "Did you mean 'deep'?"),
        (DEEP + 'floor = "deeep"', "Did you mean 'deep'?"),
        (TABLES + 'floor = "tabular"', "floor is the old name of the key kind: drop floor."),
        (DEEP.replace('"dqn"', '"dqm"'), "Did you mean 'dqn'?"),
        (DEEP.replace('"dqn"', '"dqn", "dqn"'), "the agent 'dqn' twice"),
        (DEEP.replace('"dqn"', '"q-learning"'), 'is a tabular agent: set kind = "tabular"'),
        (DEEP.replace('"dqn"', ""), "The list of agents is empty"),
        (DEEP.replace('agents = ["dqn"]', ""), "The study names no agents"),
        (DEEP.replace('["dqn"]', '"dqn"'), "agents must be a list of names"),
        (DEEP.replace("CartPole-v1", "CartPole-v7"), "Did you mean 'CartPole-v1'?"),
        (DEEP.replace("CartPole-v1", "Pendulum-v1"), "this environment's are continuous"),
        (DEEP.replace('["CartPole-v1"]', '["CartPole-v1", "CartPole-v1"]'), "'CartPole-v1' twice"),
        (DEEP.replace("seeds = 2", "seeds = [3, 1, 3]"), "the seed 3 twice"),
        (DEEP.replace("seeds = 2", "seeds = []"), "The list of seeds is empty"),
        (DEEP.replace("seeds = 2", "seeds = [-1]"), "A seed must be at least 0"),
        (DEEP.replace("seeds = 2", "seeds = true"), "seeds must be a whole number"),
        (DEEP.replace("seeds = 2", ""), "The study has no seeds"),
        (DEEP.replace("steps = 10", "steps = 0"), "steps must be at least 1"),
        (DEEP.replace("steps = 10", "steps = 1.5"), "steps must be a whole number"),
        (DEEP.replace("steps = 10", ""), "does not say how many steps"),
        (TABLES + "steps = 10", "Unknown key of the study 'steps'"),
        (TABLES + "epsilon = 2", "A rate must lie between 0 and 1"),
        (TABLES + "epsilon = { power = -1 }", "must not grow with visits"),
        (TABLES + "epsilon = { from = 1 }", "epsilon must be a number"),
        (TABLES + "discount = 1.5", "discount must lie between 0 and 1"),
        (TABLES + "record_every = 0", "record_every must be a whole number of at least 1"),
        (TABLES + 'preset = "plain"', "Tabular agents have no presets"),
        (TABLES + '[[agent]]\nname = "ebql"\nensemble_size = 1', "ensemble size must be at least 2"),
        (TABLES + '[[agent]]\nname = "double-q-learning"\nturn = "left"', "Unknown turn 'left'"),
        (TABLES.replace("ebql/MetaChain-v0", "FrozenLake-v1"), "give a discount below 1"),
        (TABLES.replace("ebql/MetaChain-v0", "CartPole-v1"), "cannot be used in a study of tabular agents"),
        (TABLES.replace("ebql/MetaChain-v0", "Blackjack-v1"), "cannot be used in a study of tabular agents"),
    ],
)
def test_bad_studies_are_refused_with_one_line(study, text, message):
    with pytest.raises(UserError) as refusal:
        study(text)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value).strip() or "TOML" in message


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_study(tmp_path / "nothing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UserError, match="not UTF-8 text"):
        read_study(tmp_path / "binary.toml")


def test_the_whole_family_of_tables_can_be_studied(study):
    found = study("""
        kind = "tabular"
        environments = ["ebql/MetaChain-v0"]
        seeds = 2
        episodes = 5
        agents = ["maxmin-q-learning", "redq", "speedy-q-learning"]
        [[agent]]
        name = "ebql"
        split = "adaptive"
    """)
    assert [run.agent for run in found.runs] == ["maxmin-q-learning", "redq", "speedy-q-learning", "ebql"]
    assert found.runs[-1].options["split"] == "adaptive"


def test_short_names_of_games_stand_for_their_ids(study):
    found = study('agents = ["dqn"]\nenvironments = ["pong"]\nseeds = [0]\nsteps = 10')
    assert (found.runs[0].environment, found.runs[0].preset) == ("ALE/Pong-v5", "atari-paper")


def test_a_game_named_twice_and_a_seed_too_large_are_refused(study):
    with pytest.raises(InputError, match=r"the environment 'ALE/Pong-v5' twice"):
        study('agents = ["dqn"]\nenvironments = ["pong", "ALE/Pong-v5"]\nseeds = [0]\nsteps = 10')
    with pytest.raises(InputError, match="A seed must be below 2⁶³"):
        study(f'agents = ["dqn"]\nenvironments = ["CartPole-v1"]\nseeds = [0, {2**70}]\nsteps = 10')


def test_the_old_key_floor_still_works_and_names_the_new_one(study):
    old = study(TABLES.replace("kind =", "floor ="))
    assert (old.kind, old.runs) == ("tabular", study(TABLES).runs)
    assert old.notes == ('The key floor is now called kind: write kind = "tabular" in the study.',)
    assert study(TABLES).notes == ()


GRID = """
environments = ["CartPole-v1"]
seeds = 2
steps = 100
preset = "plain"
learning_rate = [1e-3, 2e-3]
hidden = [8, 8]
epsilon_schedule = "piecewise"
epsilon_points = [[0, 1.0], [50, 0.1]]

[[agent]]
name = "dqn"
n_step = [1, 3]

[[agent]]
name = "ebql"
hidden = [[4], [16, 16]]
"""


def test_lists_of_values_make_a_grid():
    """Options that are lists themselves vary if they list lists: ε's points are one value."""
    runs = parse_study(GRID, "the study", to_run=False).runs
    assert len(runs) == 2 * (2 * 2 + 2 * 2)
    by_label = {run.label: run.options for run in runs}
    assert list(by_label)[:2] == [
        "dqn, learning-rate 0.001, n-step 1",
        "dqn, learning-rate 0.001, n-step 3",
    ]
    options = by_label["ebql, learning-rate 0.002, hidden 16 16"]
    assert (options["learning_rate"], options["hidden"], options["n_step"]) == (2e-3, [16, 16], 1)
    assert by_label["dqn, learning-rate 0.001, n-step 3"]["hidden"] == [8, 8]
    assert options["epsilon_points"] == [[0, 1.0], [50, 0.1]]


@pytest.mark.parametrize(
    ("option", "told"),
    [("n_step = []", "n_step lists no values"), ("n_step = [3, 3]", "value of n_step '3' twice")],
)
def test_a_grid_without_values_or_with_equal_ones_is_refused(option, told):
    with pytest.raises(InputError, match=told):
        parse_study(GRID.replace("n_step = [1, 3]", option), "the study", to_run=False)


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("*.toml")), ids=lambda path: path.parent.name)
def test_every_study_of_the_results_can_be_read(path):
    assert read_study(path, to_run=False).runs
