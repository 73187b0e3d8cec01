"""The mean return of two players in the Gymnasium environment: one that plays at random, and the expert.

python cards/examples/gymnasium_returns.py
"""

from collections.abc import Callable

import gymnasium
import numpy as np

import aegen
import aegen.gym  # registers aegen/Aor-v0, aegen/Aes-v0, aegen/Aec-v0 and aegen/Text-v0

Player = Callable[[dict[str, str]], np.ndarray]


def mean_return(game: gymnasium.Env, player: Player, episodes: int = 50) -> float:
    """Play ``episodes`` pairs; the reward is 1 for DONE in a state that wins."""
    total = 0.0
    for episode in range(episodes):
        _, info = game.reset(seed=0, options={"pair": episode})
        ended = False
        while not ended:
            _, reward, done, out_of_steps, info = game.step(player(info))
            total += float(reward)
            ended = done or out_of_steps
    return total / episodes


if __name__ == "__main__":
    game = gymnasium.make("aegen/Aes-v0", n=10, l=4)
    game.action_space.seed(0)

    def expert(info: dict[str, str]) -> np.ndarray:
        """The first step of the expert's trajectory from this state."""
        script = aegen.trajectory(info["state"].split(), info["goal"].split(), metric="span", design="span")
        return game.unwrapped.encode(script[0].action)

    print("random:", mean_return(game, lambda info: game.action_space.sample()))
    print("expert:", mean_return(game, expert))
