"""Environments: MDPs with known values, Gymnasium, MinAtar and Atari, all stepped as lanes."""

from ebql.environments.atari.games import AtariProtocol, atari_protocol, canonical_name, is_atari
from ebql.environments.exact import mdp_env, probes
from ebql.environments.exact.discrete import DiscreteEnv, make_discrete, mdp_from_gymnasium
from ebql.environments.exact.mdp import MDP, Decision
from ebql.environments.exact.mdp_env import MDPEnv
from ebql.environments.exact.worlds import (
    PAPER_MEANS,
    bandit,
    chain,
    internet_ads,
    maxmin_chain,
    meta_chain,
    noisy_grid,
    repeated_bandit,
    roulette,
    sutton_barto_bias,
)
from ebql.environments.lanes.make import Environment, Episode, Lanes, LaneStep, make_lanes
from ebql.environments.make import known_environments, make_environment

__all__ = [
    "MDP",
    "PAPER_MEANS",
    "AtariProtocol",
    "Decision",
    "DiscreteEnv",
    "Environment",
    "Episode",
    "LaneStep",
    "Lanes",
    "MDPEnv",
    "atari_protocol",
    "bandit",
    "canonical_name",
    "chain",
    "internet_ads",
    "is_atari",
    "known_environments",
    "make_discrete",
    "make_environment",
    "make_lanes",
    "maxmin_chain",
    "mdp_from_gymnasium",
    "meta_chain",
    "noisy_grid",
    "repeated_bandit",
    "roulette",
    "sutton_barto_bias",
]

mdp_env.register()
probes.register()
