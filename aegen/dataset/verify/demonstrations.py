"""The rows of demonstrations: replayed through the environment."""

from __future__ import annotations

from functools import lru_cache

from aegen.core.errors import BadData
from aegen.core.format import split_state
from aegen.core.types import Tokens
from aegen.dataset.contract import Contract
from aegen.dataset.counts import Counts, count_rows
from aegen.dataset.shards import read_batches, read_pairs
from aegen.dataset.verify.counted import Place, check_counts

HELD_TOKENS = 1 << 26  # of states whose outcome is remembered


def check_steps(path: Place, pairs: Place, config: str, contract: Contract) -> int:
    """Replay every trajectory through the environment to its pair's goal. Steps seen."""
    kept = min(1 << 16, HELD_TOKENS // (contract.max_state + 1))
    step = lru_cache(maxsize=kept)(contract.environment.step)
    wanted = read_pairs(pairs, "variants" if config == "variants_expert" else "pairs")
    rows, counts = 0, Counts()
    trajectory: tuple[int, int] | None = None
    expected: Tokens | None = None  # the state that the environment says comes next; None at the end of a trajectory
    number, goal, seen_pair = 0, "", -1

    def wrong(what: str) -> BadData:
        return BadData(f"{path}: row {rows}: {what}")

    for batch in read_batches(path, config):
        for pair, origin, index, state, action in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            tokens = split_state(state)
            if len(tokens) > contract.max_state:
                raise wrong(f"a state of {len(tokens):,} tokens, the metadata says {contract.max_state:,} at most")
            if expected is None:
                if origin == 0:
                    seen_pair, source, goal = next(wanted, (-1, "", ""))
                    if state != source:
                        raise wrong("the trajectory does not begin with its pair's source")
                elif config != "augmented" or trajectory is None or trajectory != (pair, origin - 1):
                    raise wrong(f"origin {origin} out of order")
                if pair != seen_pair:
                    raise wrong(f"pair {pair}, expected {seen_pair}")
                trajectory, number = (pair, origin), 0
                if index != 0:
                    raise wrong(f"the trajectory begins with step {index}")
            elif tokens != expected or trajectory != (pair, origin) or index != number:
                raise wrong("the step does not follow from the previous one")
            outcome = step(tokens, tuple(action))
            if outcome.refusal:
                raise wrong(f"the environment refuses {action}: {outcome.refusal}")
            if outcome.done and state != goal:
                raise wrong("the trajectory does not end at its goal")
            expected, number = (None if outcome.done else outcome.state), number + 1
            rows += 1
        counts += count_rows(batch, contract.design)
    if expected is not None or next(wanted, None) is not None:
        raise wrong("the trajectories end before the pairs do")
    check_counts(path, config, counts)
    return rows
