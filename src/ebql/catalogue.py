"""All methods, tabular and deep: a summary, the sign of the bias and the paper of each.

This is text only. The code is in `ebql.tabular` and `ebql.deep`, the equations are in `docs/algorithms.md`.
"""

from typing import Literal, NamedTuple

Bias = Literal["over", "under", "either"]


class Method(NamedTuple):
    """A method; `tabular` and `deep` are the names of its agents, empty if there is none.

    `bias` is the sign of its error in a noisy maximum. "either" depends on its parameter or on the gaps.
    """

    name: str
    line: str
    bias: Bias
    paper: str
    tabular: str = ""
    deep: str = ""
    deep_bias: Bias | None = None
    """The sign for the deep agent, if it differs."""

    @property
    def biases(self) -> str:
        """The signs for the tabular and the deep agent, in words."""
        return self.bias if self.deep_bias is None else f"{self.bias}, networks {self.deep_bias}"


FAMILY: tuple[Method, ...] = (
    Method(
        "Q-learning",
        "One table or network selects and evaluates.",
        "over",
        "Watkins and Dayan 1992, Machine Learning; Mnih et al. 2015, Nature",
        "QLearning",
        "dqn",
    ),
    Method(
        "Double Q-learning",
        "One selects, the other (the target copy) evaluates.",
        "under",
        "van Hasselt 2010, NeurIPS; van Hasselt, Guez and Silver 2016, AAAI",
        "DoubleQLearning",
        "double-dqn",
        "over",  # the target copy is not independent of the online network
    ),
    Method(
        "EBQL",
        "A member selects, the mean of the others evaluates; the split may adapt.",
        "under",
        "Peer, Tessler, Merlis and Meir 2021, ICML",
        "EBQL",
        "ebql",
        "either",  # members that share minibatches and a torso are not independent
    ),
    Method(
        "Ensemble Q-learning",
        "The maximum of the members' mean.",
        "over",
        "Anschel, Baram and Shimkin 2017, ICML",
        "EnsembleQLearning",
        "ensemble-dqn",
    ),
    Method(
        "Averaged Q-learning",
        "The maximum of the mean of the last K snapshots.",
        "over",
        "Anschel, Baram and Shimkin 2017, ICML",
        "AveragedQLearning",
        "averaged-dqn",
        "either",  # the average lags behind the network
    ),
    Method(
        "Maxmin Q-learning",
        "The maximum of the members' minimum: K sets the bias.",
        "either",
        "Lan, Pan, Fyshe and White 2020, ICLR",
        "Maxmin",
        "maxmin-dqn",
    ),
    Method(
        "Weighted double Q-learning",
        "Mixes selector and evaluator by the gap to the worst action.",
        "either",
        "Zhang, Pan and Kochenderfer 2017, IJCAI",
        "WeightedDoubleQLearning",
        "weighted-double-dqn",
    ),
    Method(
        "Clipped double Q-learning",
        "One selects, the lower of the two evaluates.",
        "under",
        "Fujimoto, van Hoof and Meger 2018, ICML",
        "ClippedDoubleQLearning",
        "clipped-double-dqn",
    ),
    Method(
        "Cross Q-learning",
        "A member selects, one random other evaluates.",
        "under",
        "Wang and Vinel 2020, arXiv:2009.13780",
        "CrossQLearning",
        "cross-dqn",
    ),
    Method(
        "REDQ",
        "The maximum of the minimum over a random subset of members.",
        "either",
        "Chen, Wang, Zhou and Ross 2021, ICLR",
        "REDQ",
        "redq",
    ),
    Method(
        "AdaEQ",
        "REDQ's target; evaluations adapt the size of the subset to the measured error.",
        "either",
        "Wang, Lin and Zhang 2021, NeurIPS",
        deep="adaeq",
    ),
    Method(
        "Bootstrapped Q-learning",
        "Members learn independently from masked data; one acts in each episode.",
        "over",
        "Osband, Blundell, Pritzel and Van Roy 2016, NeurIPS",
        "BootstrappedQLearning",
        "bootstrapped-dqn",
    ),
    Method(
        "Randomised priors",
        "Bootstrapped members, each with a fixed random function added.",
        "over",
        "Osband, Aslanides and Cassirer 2018, NeurIPS",
        "RandomisedPriors",
        "randomised-priors",
    ),
    Method(
        "SUNRISE",
        "Bootstrapped members that learn less where they disagree, and act on an upper bound.",
        "over",
        "Lee, Laskin, Srinivas and Abbeel 2021, ICML",
        "SUNRISE",
        "sunrise",
    ),
    Method(
        "Self-correcting Q-learning",
        "Q minus β times its latest change selects, Q evaluates.",
        "either",
        "Zhu and Rigotti 2021, AAAI",
        "SelfCorrectingQLearning",
    ),
    Method(
        "Speedy Q-learning",
        "The latest change of the next state's maximum has full weight.",
        "over",
        "Azar, Munos, Ghavamzadeh and Kappen 2011, NeurIPS",
        "SpeedyQLearning",
    ),
    Method(
        "Weighted Q-learning",
        "Every action's mean, weighted by the probability that it is the best.",
        "either",
        "D'Eramo, Restelli and Nuara 2016, ICML",
        "WeightedQLearning",
        "weighted-dqn",
    ),
    Method(
        "T-estimator Q-learning",
        "The mean of the actions that a two-sample test cannot tell from the best.",
        "either",
        "Waltz and Okhrin 2022, arXiv:2201.08078",
        "TEQLearning",
        "te-dqn",
    ),
    Method(
        "K-estimator Q-learning",
        "All actions, weighted by a kernel of the two-sample test's score.",
        "either",
        "Waltz and Okhrin 2022, arXiv:2201.08078",
        "KEQLearning",
        "ke-dqn",
    ),
    Method(
        "Order Q-learning",
        "The maximum of an order statistic of the members.",
        "either",
        "Tan, Xie and Lian 2024, IJCAI",
        "OrderQLearning",
        "order-dqn",
    ),
    Method(
        "Adaptive order Q-learning",
        "Order Q-learning whose index follows how many members agree.",
        "either",
        "after Tan, Xie and Lian 2024, IJCAI",
        "AdaptiveOrderQLearning",
        "adaptive-order-dqn",
    ),
    Method(
        "2RA Q-learning",
        "The maximum of the members' mean, lowered by the radius of a robust estimate.",
        "either",
        "Schmitt-Förster and Sutter 2024, ICML",
        "RobustQLearning",
        "robust-dqn",
    ),
    Method(
        "Action-candidate clipped double Q-learning",
        "The other names candidates, one selects among them; the lower value evaluates.",
        "either",
        "Jiang, Xie and Yang 2021, AAAI",
        "CandidateQLearning",
        "candidate-dqn",
    ),
    Method(
        "Smoothed Q-learning",
        "The maximum and, with a small weight, the mean of the other actions.",
        "either",
        "Barber 2023, arXiv:2303.08631",
        "SmoothedQLearning",
        "smoothed-dqn",
    ),
    Method(
        "MeanQ",
        "The maximum of the members' mean; each learns from minibatches of its own.",
        "over",
        "Liang, Xu, McAleer, Hu, Ihler, Abbeel and Fox 2022, arXiv:2209.07670",
        deep="meanq",
    ),
    Method(
        "Deep double Q-learning",
        "Two networks; each selects for itself, and the other evaluates.",
        "under",
        "Nagarajan, White and Machado 2025, arXiv:2507.00275",
        deep="deep-double-q",
    ),
    Method(
        "Rainbow",
        "Double DQN, priorities, dueling, n-step returns, distributions and noise in one network.",
        "either",
        "Hessel et al. 2018, AAAI",
        deep="rainbow",
    ),
    Method(
        "QR-DQN",
        "DQN on quantiles of the return; their mean selects.",
        "over",
        "Dabney, Rowland, Bellemare and Munos 2018, AAAI",
        deep="qr-dqn",
    ),
    Method(
        "IQN",
        "DQN on quantiles of the return at random fractions; their mean selects.",
        "over",
        "Dabney, Ostrovski, Silver and Munos 2018, ICML",
        deep="iqn",
    ),
    Method(
        "RainbowEBQL",
        "Rainbow with an ensemble: each member selects, the others evaluate.",
        "under",
        "Hessel et al. 2018, AAAI; Peer et al. 2021, ICML",
        deep="rainbow-ebql",
    ),
)
