"""Ensemble Bootstrapped Q-Learning: the value of the best action, estimated without fooling yourself.

Three floors, one rule. `ebql.estimators` holds the statistics (who picks the best arm, who measures
it), `ebql.tabular` the tables, and `ebql.deep` the networks.
"""

from importlib.metadata import version

__version__ = version("ebql")
