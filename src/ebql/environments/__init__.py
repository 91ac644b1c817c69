"""Every world behind one interface."""

from ebql.environments import mdp_env
from ebql.environments.discrete import DiscreteEnv, make_discrete, mdp_from_gymnasium
from ebql.environments.mdp import MDP, Decision
from ebql.environments.mdp_env import MDPEnv
from ebql.environments.worlds import PAPER_MEANS, bandit, chain, meta_chain, sutton_barto_bias

__all__ = [
    "MDP",
    "PAPER_MEANS",
    "Decision",
    "DiscreteEnv",
    "MDPEnv",
    "bandit",
    "chain",
    "make_discrete",
    "mdp_from_gymnasium",
    "meta_chain",
    "sutton_barto_bias",
]

mdp_env.register()
