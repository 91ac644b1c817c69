"""Every world behind one interface."""

from ebql.environments import probes
from ebql.environments.lanes import Environment, Episode, Lanes, LaneStep, make_lanes
from ebql.environments.make import known_environments, make_environment

__all__ = [
    "Environment",
    "Episode",
    "LaneStep",
    "Lanes",
    "known_environments",
    "make_environment",
    "make_lanes",
]

probes.register()
