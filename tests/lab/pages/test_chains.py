import json
import threading

import numpy as np
import pytest

from ebql.environments import chain
from ebql.errors import InputError
from ebql.estimators.intervals import over_seeds
from ebql.lab.pages.chains import asked, regime_map, results
from ebql.paper.chains.curves import ALPHAS, DQL, EPSILONS, QL
from ebql.tabular import EBQL, Group, Metric, group_mean, learn, measure

SMALL = {"means": "-0.1", "agents": "QL,EBQL", "k": "3", "episodes": "300", "seeds": "5", "alpha": "0.1"}


def expected_rate(agent):
    world = chain(-0.1)
    history = learn(
        world,
        agent,
        episodes=300,
        seeds=5,
        epsilon=EPSILONS["0.1"],
        learning_rate=ALPHAS["0.1"],
        record_every=2,
    )
    return over_seeds(group_mean(measure(history)[Metric.GREEDY_CORRECT], world, Group.ALL).mean(1))


def test_the_curves_are_those_of_the_compiled_loop():
    ql, ebql = results(asked(SMALL), threading.Event())
    assert (ql["label"], ebql["label"]) == ("QL", "EBQL 3")
    for told, agent in ((ql, QL), (ebql, EBQL(3))):
        rate, half = expected_rate(agent)
        assert told["rate"] == rate
        assert told["half_width"] == half
    band = ql["metrics"]["greedy_correct"]
    assert len(ql["x"]) == len(band["y"])
    assert np.all(band["low"] <= band["y"])


def test_agents_and_sizes_are_chosen():
    experiment = asked({"agents": "DQL,EBQL", "k": "3, 7"})
    assert experiment.agents == (DQL, EBQL(3), EBQL(7))
    assert len(experiment.means) == 6


def test_a_visitor_who_leaves_stops_the_learning():
    stop = threading.Event()
    stop.set()
    with pytest.raises(InputError, match="Cancelled"):
        next(results(asked(SMALL), stop))


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"means": "0.1,x"}, "means must be a number"),
        ({"means": ",".join(["0"] * 13)}, "at most 12 chains"),
        ({"k": "1"}, "k must be a whole number from 2 to 30"),
        ({"k": "2,3,4,5,6,7"}, "at most 5 ensemble sizes"),
        ({"agents": "Quick"}, "Unknown agent 'Quick'"),
        ({"epsilon": "2"}, "Unknown epsilon"),
        ({"seeds": "4"}, "seeds must be a whole number from 5 to 100"),
        ({"episodes": "1000000"}, "episodes must be"),
    ],
)
def test_parameters_out_of_range_are_refused(query, line):
    with pytest.raises(InputError, match=line):
        asked(query)


def test_the_regime_map_is_the_papers():
    found = regime_map()["regimes"]
    assert len(found) == 12
    assert (found[0]["epsilon"], found[0]["alpha"]) == ("0.1", "1/n^0.8")
    first = found[0]["cells"][0]
    assert first == {"members": 3, "margin": -0.255324996, "sure": True, "rival": "QL"}
    assert {regime["epsilon"] for regime in found} == set(EPSILONS)


def test_the_stream_tells_each_agent_and_then_ends(client):
    text = client.get("/api/chains", params=SMALL).text
    events = [block.split("\n") for block in text.strip().split("\n\n")]
    assert [event[0] for event in events] == ["event: curve", "event: curve", "event: done"]
    assert json.loads(events[0][1].removeprefix("data: "))["rate"] == float(expected_rate(QL).mean)


def test_parameters_out_of_range_are_the_last_event_of_the_stream(client):
    text = client.get("/api/chains?seeds=1").text
    assert text.startswith("event: refused\n")
    assert "seeds must be a whole number from 5 to 100, not '1'." in text


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("means=abc", "means must be a number from -5 to 5, not 'abc'."),
        ("k=1", "k must be a whole number from 2 to 30, not '1'."),
        ("epsilon=7", "epsilon must be 0.1, 0.3, 1, 1/√n(s), not “7”: 0.1 is shown."),
        ("agents=Nobody", "There is no agent “Nobody” here."),
        ("seeds=1000", "seeds must be from 5 to 100, in steps of 5, not “1000”: 100 is shown."),
    ],
)
def test_an_address_out_of_range_is_told_in_words(visit, query, line):
    page = visit(f"/chains?{query}")
    page.get_by_text(line).wait_for()
    page.get_by_role("button", name="Cancel").or_(page.locator("#run:enabled")).first.wait_for()


def test_an_empty_page_says_what_to_do_next(visit):
    page = visit("/chains")
    page.get_by_text("Nothing has been learnt yet").wait_for()
    assert not page.locator("#correct").is_visible()


def test_learning_can_be_cancelled(visit):
    page = visit("/chains?seeds=100&episodes=5000&k=10,20,30&agents=EBQL,Maxmin,Cross")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled.").wait_for()
    assert page.locator("#run").is_enabled()


def test_a_run_from_the_page_shows_the_numbers_of_the_python_functions(visit):
    query = "&".join(f"{name}={value}" for name, value in SMALL.items())
    page = visit(f"/chains?{query}")
    row = page.locator('#rates tr[data-agent="EBQL 3"]')
    row.wait_for(timeout=60_000)
    rate, half = expected_rate(EBQL(3))
    assert float(row.get_attribute("data-rate")) == rate
    assert f"{rate:.3f} ± {half:.3f}" in row.inner_text()
    assert page.locator("svg.chain").count() == 1
    page.get_by_role("button", name="Run ε = 1, α = 1/n, K = 3:").click()
    visit.until(lambda: "epsilon=1&" in page.url)
    page.get_by_text("4 agents learnt").or_(page.get_by_text("3 agents learnt")).wait_for(timeout=60_000)
