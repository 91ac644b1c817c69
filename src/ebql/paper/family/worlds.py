"""The worlds of the studies of tables that the paper does not have: a graded Meta-Chain, and bandits."""

from dataclasses import replace

from ebql.environments import MDP, chain, meta_chain

# On the Meta-Chain all actions behind the risky one have the same mean, so selecting the wrong one costs
# nothing. On this chain one action is better. There are fewer actions, so that each is tried often enough.
GRADED_CHAIN = "graded meta-chain"
GRADED_ACTIONS = 4
GAP = 1.0

ARM_STD = 5.0


def graded_meta_chain(gap: float = GAP, actions: int = GRADED_ACTIONS) -> MDP:
    """Return the Meta-Chain with one best action in each state B: the means of the others are `gap` lower."""
    world = meta_chain(actions=actions)
    means = world.reward_means.copy()
    for decision in world.decisions:
        means[decision.state + 1, 1:] -= gap  # B is the state after A; its first action keeps its mean
    return replace(world, reward_means=means, name=GRADED_CHAIN)


def arms_world(arms: int) -> MDP:
    """Return a bandit: the risky action leads to a state with this many arms, all of mean 0."""
    return chain(0.0, std=ARM_STD, actions=arms)
