import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebql.errors import InputError
from ebql.paper.atari.plan import GAMES_BY_LEAD, cost, makespan, proposal
from ebql.paper.atari.scores import AGENTS, FULL, GAMES, Protocol

# Hours of a million steps: 1, 2 and 5 for DQN, double DQN and EBQL; 8 of all three.
SPEEDS = {agent: 1e6 / 3600 / hours for agent, hours in zip(AGENTS, (1, 2, 5), strict=True)}
ONE_SPEED = dict.fromkeys(AGENTS, 1000.0)


def test_the_full_protocol_costs_what_it_does_by_hand():
    found = cost(FULL, ONE_SPEED)
    assert found.machine_hours == pytest.approx(165 * 50_000_000 / 1000 / 3600)
    assert found.hours == pytest.approx(found.machine_hours)
    assert cost(FULL, SPEEDS).hours == pytest.approx(55 * 50 * 8)


def test_machines_take_whole_runs():
    small = Protocol(games=("Pong",), seeds=1, steps=1_000_000)
    # 5 | 2 + 1: a second machine saves less than half, a third only what DQN took, a fourth nothing.
    hours = [cost(small, SPEEDS, machines).hours for machines in (1, 2, 3, 4, 1000)]
    assert hours == pytest.approx([8, 5, 5, 5, 5])
    assert cost(small, SPEEDS, 3).machine_hours == pytest.approx(8)


def test_makespan_by_hand():
    assert makespan([3, 3, 2, 2, 2], 2) == 7  # longest first is not always the best: 6 would do
    assert makespan([4, 3, 2, 1], 2) == 5
    assert makespan([], 3) == 0


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30), st.integers(1, 40))
def test_makespan_is_within_its_bounds(durations, machines):
    found = makespan(durations, machines)
    least = max(max(durations), sum(durations) / machines)
    assert least * (1 - 1e-9) <= found <= (4 / 3) * least + max(durations)


def test_games_go_by_the_papers_lead():
    assert GAMES_BY_LEAD[:3] == ("VideoPinball", "Gopher", "Breakout")
    assert GAMES_BY_LEAD[-1] == "PrivateEye"
    assert sorted(GAMES_BY_LEAD) == sorted(GAMES)


@pytest.mark.parametrize(
    ("hours", "games", "seeds", "steps"),
    [
        (1e9, 11, 5, 50_000_000),
        (55 * 50 * 8, 11, 5, 50_000_000),  # to the hour
        (55 * 50 * 8 - 1, 11, 5, 49_000_000),  # runs get shorter first
        (55 * 10 * 8, 11, 5, 10_000_000),
        (55 * 10 * 8 - 1, 10, 5, 10_000_000),  # then games go, while longer runs take up the rest
        (9 * 5 * 11 * 8, 9, 5, 11_000_000),
        (5 * 10 * 8, 1, 5, 10_000_000),
        (5 * 10 * 8 - 1, 1, 4, 12_000_000),  # then seeds
        (2 * 10 * 8, 1, 2, 10_000_000),
        (2 * 10 * 8 - 1, 3, 5, 1_000_000),  # then steps again, and the rest as before
        (2 * 8, 1, 2, 1_000_000),
    ],
)
def test_a_proposal_cuts_steps_then_games_then_seeds(hours, games, seeds, steps):
    found = proposal(hours, SPEEDS)
    assert found.protocol == Protocol(GAMES_BY_LEAD[:games], AGENTS, seeds, steps)
    assert found.hours <= hours * (1 + 1e-9)


@given(st.floats(20, 1e5), st.integers(1, 200))
def test_a_proposal_fits(hours, machines):
    found = proposal(hours, SPEEDS, machines)
    assert found.hours <= hours * (1 + 1e-9)
    assert found.protocol.agents == AGENTS
    assert found.protocol.seeds >= 2


def test_bad_input_is_refused():
    with pytest.raises(
        InputError, match="Nothing fits into 15 hours: .* 2 seeds and 1,000,000 steps take 16.0"
    ):
        proposal(15, SPEEDS)
    for budget in (0, -1, float("nan")):
        with pytest.raises(InputError, match="budget must be positive"):
            proposal(budget, SPEEDS)
    with pytest.raises(InputError, match="machines must be at least 1"):
        cost(FULL, SPEEDS, 0)
    with pytest.raises(InputError, match="steps-per-second must be positive, not 0"):
        cost(FULL, dict.fromkeys(AGENTS, 0.0))
