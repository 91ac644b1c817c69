"""Three environments as people write them for their own work: Gymnasium's interface and nothing else."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit


class Inventory(gymnasium.Env[Any, Any]):
    """A shop orders stock every day for 30 days; demand is random, storage costs, sales pay."""

    CAPACITY, PRICE, COST, DELIVERY, HOLDING = 20, 2.0, 1.0, 2.0, 0.1
    observation_space = Box(0.0, 1.0, (2,), np.float32)
    action_space = Discrete(5)  # orders of 0, 3, 6, 9 or 12 pieces

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002
        """Start with a random stock on a random day of the week."""
        super().reset(seed=seed)
        self.stock, self.day = int(self.np_random.integers(0, 10)), int(self.np_random.integers(0, 7))
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Order, then sell what is asked for; weekends are busy."""
        order = min(3 * int(action), self.CAPACITY - self.stock)
        self.stock += order
        demand = int(self.np_random.poisson(7.0 if self.day >= 5 else 3.0))
        sold = min(demand, self.stock)
        self.stock, self.day = self.stock - sold, (self.day + 1) % 7
        costs = self.COST * order + self.DELIVERY * (order > 0) + self.HOLDING * self.stock
        return self._observation(), self.PRICE * sold - costs, False, False, {}

    def _observation(self) -> Any:
        return np.array([self.stock / self.CAPACITY, self.day / 6], np.float32)


class Maintenance(gymnasium.Env[Any, Any]):
    """A machine wears out; run it slowly, run it fast or repair it. If it breaks, the episode ends."""

    observation_space = Box(0.0, 1.0, (2,), np.float32)
    action_space = Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002
        """Start with a machine that is almost new."""
        super().reset(seed=seed)
        self.wear, self.load = float(self.np_random.uniform(0, 0.2)), float(self.np_random.uniform())
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Earn by the load; a repair earns nothing and costs 1."""
        speed = (0.5, 1.0, 0.0)[int(action)]
        reward = speed * (0.5 + self.load)
        if int(action) == 2:
            self.wear, reward = max(self.wear - 0.5, 0.0), -1.0
        else:
            self.wear = min(self.wear + float(self.np_random.exponential(0.06)) * speed, 1.0)
        broken = bool(self.np_random.random() < 0.3 * self.wear**3 * speed)
        self.load = float(np.clip(self.load + self.np_random.normal(0, 0.2), 0, 1))
        return self._observation(), reward - 10.0 * broken, broken, False, {}

    def _observation(self) -> Any:
        return np.array([self.wear, self.load], np.float32)


class Heating(gymnasium.Env[Any, Any]):
    """A room is heated for four days in steps of an hour; energy is dear by day, and the room reacts late."""

    observation_space = Box(-5.0, 5.0, (4,), np.float32)
    action_space = Discrete(4)  # the heating's power

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002
        """Start in a room that is too cold or too warm, at a random hour."""
        super().reset(seed=seed)
        self.room, self.heater = float(self.np_random.uniform(14, 24)), 20.0
        self.hour, self.cold = int(self.np_random.integers(0, 24)), float(self.np_random.normal(0, 3))
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Heat the radiator, which warms the room; people are at home from 6 to 22."""
        power = int(action)
        self.heater += 8.0 * power - 0.4 * (self.heater - self.room)
        self.room += 0.15 * (self.heater - self.room) + 0.1 * (self._outside() - self.room)
        at_home = 6 <= self.hour < 22
        price = 0.2 if at_home else 0.1
        discomfort = min(abs(self.room - 20.0), 5.0) * (0.3 if at_home else 0.05)
        self.hour, self.cold = (self.hour + 1) % 24, 0.9 * self.cold + float(self.np_random.normal(0, 1))
        return self._observation(), 1.0 - discomfort - price * power, False, False, {}

    def _outside(self) -> float:
        return float(5.0 + 5.0 * np.sin((self.hour - 9) / 24 * 2 * np.pi) + self.cold)

    def _observation(self) -> Any:
        turn = self.hour / 24 * 2 * np.pi
        values = [(self.room - 20) / 5, (self.heater - 30) / 20, np.sin(turn), np.cos(turn)]
        return np.clip(np.array(values, np.float32), -5, 5)


def inventory() -> gymnasium.Env[Any, Any]:
    """Return a shop for 30 days."""
    return TimeLimit(Inventory(), 30)


def maintenance() -> gymnasium.Env[Any, Any]:
    """Return a machine for at most 100 hours."""
    return TimeLimit(Maintenance(), 100)


def heating() -> gymnasium.Env[Any, Any]:
    """Return a room for four days."""
    return TimeLimit(Heating(), 96)


TASKS = {"inventory": inventory, "maintenance": maintenance, "heating": heating}
