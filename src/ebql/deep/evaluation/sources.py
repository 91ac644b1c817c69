"""Which environment an agent is evaluated in: never the one that it is being trained in."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ebql.deep.building import build_lanes, torch_threads
from ebql.deep.config.base import AgentConfig
from ebql.deep.networks.spaces import Spaces
from ebql.environments import Environment, Lanes
from ebql.environments.sources import another_factory, given, is_object, is_same
from ebql.errors import InputError

_MOST_LANES = 10
_OWN = "evaluation_environment"


class EvaluationSources:
    """The environments that an agent may be evaluated in."""

    def __init__(self, training: Environment | None, evaluation: Environment | None = None) -> None:
        if training is not None and is_same(training, evaluation):
            raise InputError("evaluation_environment must not be the environment that the agent trains in.")
        self._training = training
        self._evaluation = None if evaluation is None else given(evaluation)
        self._has_own, self._lacks_own = evaluation is not None, False

    @classmethod
    def from_json(
        cls, description: Mapping[str, Any], training: Environment | None, evaluation: Environment | None
    ) -> "EvaluationSources":
        """Return what a saved file or a run describes, with `evaluation`, if given, for the one there."""
        sources = cls(training, evaluation)
        if _OWN in description and evaluation is None:
            sources._evaluation = description[_OWN]
            sources._has_own, sources._lacks_own = True, description[_OWN] is None
        return sources

    def to_json(self) -> dict[str, Any]:
        """Return what files keep of an evaluation environment of its own, if there is one: its id."""
        name = self._evaluation if isinstance(self._evaluation, str) else None
        return {_OWN: name} if self._has_own else {}

    def require_own(self) -> None:
        """Refuse an agent whose evaluation environment is not in its file."""
        if self._lacks_own:
            raise InputError(
                "This agent's evaluation environment was a Python object: pass it again to `load` or "
                "`resume` as `evaluation_environment`, or to `evaluate` as `environment`."
            )

    def default(self) -> Environment | None:
        """Return what evaluations use unless they are given an environment; None if there is nothing to use.

        Without an evaluation environment of its own, it is the id or the function that training uses, or
        a function that makes another environment like the one in training.
        """
        self.require_own()
        if self._evaluation is None and is_object(self._training):
            self._evaluation = another_factory(self._training)
            return self._evaluation
        return self._evaluation if self._evaluation is not None else self._training

    def allow_training(self, config: AgentConfig, lanes: Lanes | None) -> bool:
        """Return whether an agent can be evaluated while it trains in `lanes`; warn if it cannot be.

        The environment in training is refused here, and so is a function that returns one environment twice,
        before any step is taken.
        """
        if self._training is None:
            return False
        source = self.default()
        if source is not None:
            if lanes is not None and not isinstance(source, str):
                made = build_lanes(
                    config, source, 1 if is_object(source) else min(2, config.evaluation_episodes)
                )
                _require_apart(made, lanes)
                if not is_object(source):
                    made.close()
            return True
        warnings.warn(
            "Training without evaluations: the environment's spec does not allow making a second one. "
            "Pass a function that makes the environment, or an evaluation_environment.",
            stacklevel=2,
        )
        return False

    @contextmanager
    def lanes(
        self,
        config: AgentConfig,
        spaces: Spaces,
        environment: Environment | None,
        episodes: int,
        *,
        in_training: Lanes | None,
    ) -> Iterator[Lanes]:
        """Yield lanes in which to play, over `environment` if given; close those that were made here.

        `in_training` are the lanes of a training in progress, which an evaluation in one of their
        environments would disturb.
        """
        source = given(environment) if environment is not None else self.default()
        if source is None:
            raise InputError("Evaluation needs an environment: pass it as `environment`.")
        if in_training is not None and is_same(source, self._training):
            source = another_factory(source)
            if source is None:
                raise InputError("The agent trains in this environment: pass another one to evaluate in.")
        lanes = build_lanes(config, source, 1 if is_object(source) else min(episodes, _MOST_LANES))
        if in_training is not None:
            _require_apart(lanes, in_training)
        try:
            with torch_threads(config):
                spaces.require_fit(lanes)
                yield lanes
        finally:
            if not is_object(source):  # an environment object is the caller's to close
                lanes.close()


def _require_apart(lanes: Lanes, in_training: Lanes) -> None:
    """Refuse lanes in an environment that an agent trains in; they stay open."""
    if any(one is other for one in lanes.instances for other in in_training.instances):
        raise InputError(
            "The agent trains in this environment: pass a function that makes a new one at every call."
        )
