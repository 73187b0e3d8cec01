"""Random token sequences, pairs and metrics for the laws."""

from __future__ import annotations

from hypothesis import strategies as st

from aegen.experts.metrics import load_metric

LEVENSHTEIN, LCS, SPAN = (load_metric(name) for name in ("levenshtein", "lcs", "span"))

# Few distinct tokens make many ties; many make long alphabets.
tokens = st.sampled_from(["a", "b", "c"]) | st.sampled_from([f"w{i}" for i in range(40)])
sequences = st.lists(tokens, max_size=9).map(tuple)
pairs = st.tuples(sequences, sequences)
short_pairs = st.tuples(st.lists(tokens, max_size=5).map(tuple), st.lists(tokens, max_size=5).map(tuple))


@st.composite
def spans(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A source with parentheses and the goal in which each is one token."""
    source: list[str] = []
    goal: list[str] = []
    for token in draw(st.lists(st.sampled_from(["1", "2", "+"]), max_size=6)):
        inside = draw(st.none() | st.lists(st.sampled_from(["3", "*", "4"]), max_size=3))
        source += [token] if inside is None else ["(", *inside, ")"]
        goal.append(token)
    return tuple(source), tuple(goal)
