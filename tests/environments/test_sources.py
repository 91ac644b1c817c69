import gymnasium
from gymnasium.wrappers import TimeLimit

from ebql.environments import make_environment
from ebql.environments.exact.probes import ProbeEnv
from ebql.environments.sources import environment_factory, given, id_of, is_same


def make():
    return ProbeEnv("OneStep")


def test_ids():
    assert given("pong") == "ALE/Pong-v5"
    assert given("CartPole-v1") == "CartPole-v1"
    assert given(make) is make
    assert id_of("CartPole-v1") == id_of(make_environment("CartPole-v1")) == "CartPole-v1"
    assert id_of(gymnasium.make_vec("CartPole-v1", num_envs=2)) == "CartPole-v1"
    assert id_of(make()) is None
    assert id_of(make) is None


def test_an_instance_is_the_same_in_any_wrapper():
    environment, other = make(), make()
    assert is_same(environment, TimeLimit(environment, 5))
    assert not is_same(environment, other)
    assert not is_same(environment, None)
    assert not is_same("CartPole-v1", "CartPole-v1")


def test_another_instance_is_like_the_first_one():
    environment = gymnasium.make("FrozenLake-v1", map_name="8x8", max_episode_steps=7)
    another = environment_factory(environment)()
    assert not is_same(environment, another)
    assert another.observation_space.n == 64
    assert another.spec.max_episode_steps == 7
    lanes = gymnasium.make_vec("CartPole-v1", num_envs=3, max_episode_steps=9)
    another = environment_factory(lanes)()
    assert another.observation_space == lanes.single_observation_space
    assert another.spec.max_episode_steps == 9


def test_where_the_spec_is_not_enough_there_is_no_factory():
    assert environment_factory("CartPole-v1") is None
    assert environment_factory(make) is None
    assert environment_factory(make()) is None
    changed = gymnasium.make("CartPole-v1")
    changed.observation_space = gymnasium.spaces.Box(0, 1, (2,))
    assert environment_factory(changed) is None
    wrapped = gymnasium.make_vec(
        "CartPole-v1", num_envs=2, vectorization_mode="sync", wrappers=[lambda env: TimeLimit(env, 3)]
    )
    assert environment_factory(wrapped) is None
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2)
    assert environment_factory(gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)) is None
