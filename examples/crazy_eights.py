"""Crazy Eights for one player against a random one: a card game with action masks.

Both hold five of 32 cards. A card may be played on one of its own suit or rank, an eight on any card. Who
cannot play draws a card; who is rid of all cards first wins. Run this file to see a game between
two random players.
"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

SUITS, RANKS, EIGHT = 4, 8, 1  # ranks are 7, 8, 9, 10, jack, queen, king, ace
CARDS = SUITS * RANKS
DRAW = CARDS
NAMES = [f"{rank}{suit}" for suit in "♣♦♥♠" for rank in ("7", "8", "9", "10", "J", "Q", "K", "A")]


class CrazyEights(gymnasium.Env):
    """The agent sees its hand and the open card. Action c plays card c, the last one draws."""

    observation_space, action_space = Box(0, 1, (2 * CARDS,), np.int8), Discrete(CARDS + 1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.deck = self.np_random.permutation(CARDS).tolist()
        self.hands = [{self.deck.pop() for _ in range(5)} for _ in range(2)]
        self.open = self.deck.pop()
        return self._observe(), {}

    def action_masks(self):
        """Return the legal actions: the cards that fit, or else drawing."""
        fits = np.array([c in self.hands[0] and self._fits(c) for c in range(CARDS)])
        return np.append(fits, not fits.any())

    def step(self, action):
        # Without masks, a card that does not fit costs the turn: a card is drawn instead.
        legal = action != DRAW and action in self.hands[0] and self._fits(action)
        self._play(0, int(action) if legal else DRAW)
        if self.hands[0]:
            fitting = sorted(card for card in self.hands[1] if self._fits(card))
            self._play(1, int(self.np_random.choice(fitting)) if fitting else DRAW)
        won, lost = not self.hands[0], not self.hands[1]
        return self._observe(), float(won) - float(lost), won or lost, False, {}

    def _fits(self, card):
        same = card // RANKS == self.open // RANKS or card % RANKS == self.open % RANKS
        return same or card % RANKS == EIGHT

    def _play(self, player, card):
        if card != DRAW:
            self.hands[player].remove(card)
            self.deck.insert(0, self.open)  # under the stock
            self.open = card
        elif self.deck:
            self.hands[player].add(self.deck.pop())

    def _observe(self):
        observation = np.zeros(2 * CARDS, np.int8)
        observation[[*self.hands[0], CARDS + self.open]] = 1
        return observation


if __name__ == "__main__":
    game, ended = CrazyEights(), False
    game.reset(seed=0)
    while not ended:
        card = game.np_random.choice(np.flatnonzero(game.action_masks()))
        print(f"on {NAMES[game.open]}:", "draw" if card == DRAW else NAMES[card])
        _, reward, ended, _, _ = game.step(card)
    print("won" if reward > 0 else "lost")
