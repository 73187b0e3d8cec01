"""TG and TA: the paper's examples, the released counts, and the fast path against the plain one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegen.core.actions import DESIGNS
from aegen.core.edits import Splice, replay
from aegen.core.environment import Environment
from aegen.core.errors import InvalidEdit, InvalidSpec
from aegen.core.format import DONE, split_state
from aegen.dataset.folder import Folder
from aegen.engines.local import Local
from aegen.experts import demonstrations
from aegen.experts.augment import Augmentation, _sampled, augmented_starts, shifted_states
from aegen.experts.demonstrations import augmented_batches
from aegen.experts.expert import TASK_DEFAULTS
from aegen.experts.metrics import load_metric
from aegen.experts.policy import policy
from aegen.experts.trajectory import Pairs, Summary, expert_starts, step_batch, trajectory
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests import plain
from tests.aegen.strategies import LCS, LEVENSHTEIN, SPAN, pairs, sequences, short_pairs, spans

EDIT = DESIGNS["edit"]


def columns(many) -> Pairs:
    texts = [[" ".join(side) for side in sides] for sides in zip(*many, strict=True)] or [[], []]
    batch = pa.record_batch(
        [pa.array(range(len(many)), pa.int64()), *(pa.array(t, pa.string()) for t in texts)], ["id", "source", "target"]
    )
    return Pairs.of(batch)


def starts_of(pairs, metric, options, summary):
    scripts = metric.scripts(pairs.sources, pairs.goals, pairs.alphabet)
    return augmented_starts(pairs, scripts, options, summary).starts


def expert_steps(pairs, metric, design, summary=None):
    """TG of all pairs in one batch."""
    scripts = metric.scripts(pairs.sources, pairs.goals, pairs.alphabet)
    return step_batch(pairs, expert_starts(pairs), scripts, design, summary or Summary())


def augmented_steps(pairs, metric, design, options=None, summary=None):
    """TG and TA of all pairs in one batch, with every state looked at."""
    scripts = metric.scripts(pairs.sources, pairs.goals, pairs.alphabet)
    (made,) = augmented_batches(pairs, scripts, metric, design, options or Augmentation(), summary or Summary())
    return made


def rows(batch: pa.RecordBatch):
    return [tuple(row.values()) for row in batch.to_pylist()]


def plain_rows(many, metric, design, augment=False):
    """TG, or TA as printed and from there by the pair's policy, pair by pair."""
    made = []
    for number, (source, goal) in enumerate(many):
        trajectories = [trajectory(source, goal, metric, design)]
        if augment:
            decided, shifted = policy(source, goal, metric), shifted_states(source, metric.splices(source, goal))
            trajectories = [follow(start, decided, design) for start in (source, *shifted)]
        for origin, steps in enumerate(trajectories):
            made += [(number, origin, k, " ".join(state), list(action)) for k, (state, action) in enumerate(steps)]
    return made


def follow(state, decided, design):
    """The steps of a policy from a state on."""
    steps = []
    while edit := decided[state]:
        steps.append((state, design.encode(edit)))
        state = edit.apply(state)
    return [*steps, (state, design.done)]


def test_one_plus_one():
    steps = trajectory(("1", "1", "2"), ("1", "+", "1", "=", "2"), LEVENSHTEIN, DESIGNS["insert"])
    assert [(" ".join(s), a) for s, a in steps] == [
        ("1 1 2", ("POS_1", "+")),
        ("1 + 1 2", ("POS_3", "=")),
        ("1 + 1 = 2", ("DONE", "DONE")),
    ]
    assert shifted_states(("1", "1", "2"), LEVENSHTEIN.splices(tuple("112"), tuple("1+1=2"))) == {
        tuple("11=2"): [Splice(1, 1, ("+",))]
    }


EXAMPLES = {  # the paper's table of examples: source, target, state, action, next state, shifted state
    "aor": (
        "3 6 2 9 3", "- 3 - 6 / 2 + 9 = 3",
        "- 3 - 6 / 2 9 3", "POS_6 +", "- 3 - 6 / 2 + 9 3", "- 3 - 6 / 2 9 = 3",
    ),
    "aes": (
        "65 + ( 25 - 20 ) - ( 64 + 32 ) + ( 83 - 24 ) = ( - 25 + 58 )", "65 + 5 - 96 + 59 = 33",
        "65 + 5 - ( 64 + 32 ) + ( 83 - 24 ) = ( - 25 + 58 )", "POS_4 POS_8 96",
        "65 + 5 - 96 + ( 83 - 24 ) = ( - 25 + 58 )", "65 + 5 - ( 64 + 32 ) + 59 = ( - 25 + 58 )",
    ),
    "aec": (
        "- 2 * + 4 10 + 8 / 8 = 8", "- 2 + 10 * 8 / 8 = 8",
        "- 2 + 4 10 + 8 / 8 = 8", "DELETE POS_3 POS_3", "- 2 + 10 + 8 / 8 = 8", "- 2 + 4 10 * 8 / 8 = 8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("task", EXAMPLES)
def test_the_papers_examples(task):
    source, target, state, action, after, shifted = (text.split() for text in EXAMPLES[task])
    metric, design = (load_metric(TASK_DEFAULTS[task][0]), DESIGNS[TASK_DEFAULTS[task][1]])
    steps = trajectory(tuple(source), tuple(target), metric, design)
    assert (tuple(state), tuple(action)) in steps
    assert steps[steps.index((tuple(state), tuple(action))) + 1][0] == tuple(after)
    assert tuple(shifted) in shifted_states(tuple(source), metric.splices(tuple(source), tuple(target)))


@pytest.mark.parametrize("metric", [LEVENSHTEIN, LCS], ids=["levenshtein", "lcs"])
@given(st.lists(short_pairs, min_size=1, max_size=5))
def test_the_fast_path_is_the_plain_path(metric, many):
    fast = columns(many)
    assert rows(expert_steps(fast, metric, EDIT)) == plain_rows(many, metric, EDIT)
    assert rows(augmented_steps(fast, metric, EDIT)) == plain_rows(many, metric, EDIT, augment=True)


@pytest.mark.parametrize("design", ["span", "span2", "span3"])
@given(st.lists(spans(), min_size=1, max_size=5))
def test_the_fast_path_is_the_plain_path_for_spans(design, many):
    made = rows(augmented_steps(columns(many), SPAN, DESIGNS[design]))
    assert made == plain_rows(many, SPAN, DESIGNS[design], augment=True)


def subsets(state, edits):
    """Every choice of edits and the state it leads to, by brute force over the original places."""
    for number in range(2 ** len(edits)):
        chosen = [bool(number >> k & 1) for k in range(len(edits))]
        shift, made = 0, []
        for edit, execute in zip(edits, chosen, strict=True):
            if execute:
                made.append(Splice(edit.start - shift, edit.stop - shift, edit.new))
            else:
                shift += edit.growth
        yield replay(state, made)


@given(short_pairs)
def test_algorithm_2_by_brute_force(pair):
    source, goal = pair
    edits = LEVENSHTEIN.splices(source, goal)
    path = [replay(source, edits[:k]) for k in range(len(edits) + 1)]
    found = shifted_states(source, edits)
    assert set(found) == set(subsets(source, edits)) - set(path)
    assert all(replay(state, left) == goal for state, left in found.items())


@given(short_pairs)
def test_the_plain_algorithms_find_as_many_steps(pair):
    """Another tie-break, the same lengths: and where only insertions are needed in one way, the same trajectories."""
    game = Environment(EDIT, frozenset((*pair[0], *pair[1])), 99)
    ours, theirs = trajectory(*pair, LEVENSHTEIN, EDIT), plain.generate(*pair, game)
    assert len(ours) == len(theirs) and theirs[-1] == ours[-1]


@given(st.lists(st.sampled_from("12345678"), unique=True, min_size=1, max_size=5))
def test_the_plain_algorithms_agree_where_nothing_can_tie(numbers):
    goal = tuple(token for number in numbers for token in (number, f"o{number}"))
    game = Environment(DESIGNS["insert"], frozenset(goal), 99)
    source = tuple(numbers)
    assert plain.generate(source, goal, game) == trajectory(source, goal, LEVENSHTEIN, DESIGNS["insert"])
    assert plain.augment(source, goal, game) == [*shifted_states(source, LEVENSHTEIN.splices(source, goal))]


@given(pairs)
def test_released_takes_every_proper_choice(pair):
    starts = starts_of(columns([pair]), LEVENSHTEIN, Augmentation("released"), Summary())
    edits = len(LEVENSHTEIN.splices(*pair))
    assert len(starts.pair) == 1 + max(2**edits - 2, 0)


@settings(max_examples=30)
@given(sequences, st.integers(0, 3), st.integers(0, 20))
def test_beyond_max_edits_a_sample_is_taken(source, max_edits, max_states):
    goal = tuple(f"n{i}" for i in range(5)) + source
    summary = Summary()
    options = Augmentation(max_edits=max_edits, max_states=max_states, seed=3)
    starts = starts_of(columns([(source, goal)]), LEVENSHTEIN, options, summary)
    again = starts_of(columns([(source, goal)]), LEVENSHTEIN, options, Summary())
    everything = set(shifted_states(source, LEVENSHTEIN.splices(source, goal)))
    found = set(list(starts.states.tuples(columns([(source, goal)]).alphabet))[1:])
    assert summary.capped_pairs == 1
    assert found <= everything and len(found) <= max_states
    assert starts.states.values.tolist() == again.states.values.tolist()


@settings(max_examples=50)
@given(st.lists(pairs, min_size=1, max_size=5), st.sampled_from(["paper", "released"]), st.integers(0, 9))
def test_no_pair_exceeds_its_budget(many, algorithm, most):
    """Every pair has its share, and what it gets depends on the seed and its id alone."""
    fast, options = columns(many), Augmentation(algorithm, max_states=most, seed=5)
    starts = starts_of(fast, LEVENSHTEIN, options, Summary())
    tokens = list(starts.states.tuples(fast.alphabet))
    for number, (source, goal) in enumerate(many):
        own = [tokens[row] for row in (starts.pair == number).nonzero()[0]]
        edits = LEVENSHTEIN.splices(source, goal)
        everything = set(shifted_states(source, edits))
        if algorithm == "paper":
            assert own[0] == source and len(set(own[1:])) == len(own) - 1
            assert set(own[1:]) <= everything
            if 2 ** len(edits) <= options.drawn:  # all choices were looked at: a sample is as large as it can be
                assert len(own) - 1 == min(most, len(everything))
        assert len(own) - 1 <= most
    alone = [columns([((), ())] * number + [many[number]]) for number in range(len(many))]
    for number, one in enumerate(alone):
        again = starts_of(one, LEVENSHTEIN, options, Summary())
        states = list(again.states.tuples(one.alphabet))
        assert [states[row] for row in (again.pair == number).nonzero()[0]] == [
            tokens[row] for row in (starts.pair == number).nonzero()[0]
        ]


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_text_gets_at_most_ten_times_the_steps(source, goal):
    one = columns([(tuple(source), tuple(goal))])
    expert, augmented = (
        sum(len(batch) for batch in demonstrations.step_batches(one, LEVENSHTEIN, EDIT, options, Summary()))
        for options in (None, Augmentation.of("text"))
    )
    assert expert <= augmented <= 10 * expert


def test_another_seed_is_another_sample():
    one = columns([(tuple("abcdef"), tuple("ghijkl"))])
    found = [
        starts_of(one, LEVENSHTEIN, Augmentation.of("text", seed=seed), Summary()).states.values.tolist()
        for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]


def test_a_sample_is_as_large_as_it_says():
    for edits in range(1, 9):
        options = Augmentation(max_edits=0, max_states=30)
        assert _sampled(np.arange(3), edits, options).shape == (3, options.sampled(edits), edits)
    largest = Augmentation(max_states=1 << 20)
    assert [largest.sampled(edits) for edits in (20, 21, 22, 400)] == [1 << 20, *[largest.drawn] * 3]


def test_the_manifest_says_how_many_pairs_were_sampled(tmp_path):
    manifest, _ = pipeline.build(Spec("aec", 10, 12, 30, errors=15), Folder(tmp_path), Local())
    counts = [
        len(LEVENSHTEIN.splices(*(tuple(row[side].split()) for side in ("source", "target"))))
        for row in train(tmp_path)
    ]
    assert manifest.capped_pairs == sum(count > 10 for count in counts) > 0
    assert Folder(tmp_path).manifest() == manifest


def train(folder):
    return pq.read_table(folder / "pairs" / "train-00000-of-00001.parquet").to_pylist()


def test_portions_change_nothing(tmp_path, monkeypatch):
    spec = Spec("aec", 10, 5, 60)
    whole, _ = pipeline.build(spec, Folder(tmp_path / "whole"), Local())
    monkeypatch.setattr(demonstrations, "PORTION", 50)
    assert pipeline.build(spec, Folder(tmp_path / "parts"), Local())[0] == whole


def test_forty_edits_are_no_problem():
    source, goal = ("a",) * 40, ("b",) * 40
    summary = Summary()
    starts = starts_of(columns([(source, goal)]), LEVENSHTEIN, Augmentation(max_states=100), summary)
    assert 90 < len(starts.pair) <= 101 and summary.capped_pairs == 1


@pytest.mark.parametrize(
    "options,names",
    [({"algorithm": "x"}, "algorithm"), ({"max_edits": 21}, "max_edits"), ({"max_states": -1}, "max_states")],
)
def test_bad_options(options, names):
    with pytest.raises(InvalidSpec, match=names):
        Augmentation(**options)


def test_a_design_that_does_not_fit_the_metric_says_so():
    fast = columns([(("a",), ("b",))])
    with pytest.raises(InvalidEdit, match="insert"):
        expert_steps(fast, LEVENSHTEIN, DESIGNS["insert"])


@given(st.lists(pairs, min_size=1, max_size=5))
def test_the_summary_says_what_the_rows_hold(many):
    fast, summary = columns(many), Summary()
    steps = rows(expert_steps(fast, LEVENSHTEIN, EDIT, summary))
    states = [split_state(row[3]) for row in steps]
    assert summary.max_state == max(map(len, states))
    assert summary.max_steps == max(row[2] for row in steps) + 1
    assert summary.state_tokens == {token for state in states for token in state}
    assert summary.action_tokens == {token for row in steps for token in row[4]}
    assert [row[4] for row in steps if row[4][0] == DONE] == [[DONE] * 3] * len(many)


RELEASED = {  # expert T_max, m, unique steps (expert, with TA), trajectories with TA (paper, released)
    "aor": (6, 10, 37_345, 151_710, {"paper": 121_665, "released": 145_176}),
    "aes": (6, 35, 24_294, 71_781, {"paper": 54_487, "released": 65_948}),
    "aec": (4, 13, 17_142, 25_020, {"paper": 14_878, "released": 19_764}),
}


def unique(steps):
    return len({(row[3], *row[4]) for row in steps})


def contradictions(steps):
    """States of a pair with two actions."""
    actions = {}
    for pair, _, _, state, action in steps:
        actions.setdefault((pair, state), set()).add(tuple(action))
    return sum(len(several) > 1 for several in actions.values())


@pytest.mark.released
@pytest.mark.parametrize("task", RELEASED)
def test_the_released_data(task, released):
    texts = [(released / task / f"train_{side}.txt").read_text().replace("==", "=").splitlines() for side in "xy"]
    fast = columns([(tuple(x.split()), tuple(y.split())) for x, y in zip(*texts, strict=True)])
    metric, design = (load_metric(TASK_DEFAULTS[task][0]), DESIGNS[TASK_DEFAULTS[task][1]])
    summary = Summary()
    expert = rows(expert_steps(fast, metric, design, summary))
    *sizes, with_ta, trajectories = RELEASED[task]
    assert [summary.max_steps, summary.max_state, unique(expert)] == sizes
    for algorithm, count in trajectories.items():
        batches = demonstrations.step_batches(fast, metric, design, Augmentation(algorithm), Summary())
        augmented = [row for batch in batches for row in rows(batch)]
        assert sum(row[2] == 0 for row in augmented) == count
        assert unique(augmented) == with_ta
        assert contradictions(expert + augmented) == 0


@pytest.mark.released
@pytest.mark.parametrize(
    "task,metric,edits", [("aec", "lcs", 6), ("aec", "levenshtein", 3), ("aes", "levenshtein", 30), ("aes", "lcs", 35)]
)
def test_the_longest_scripts_of_the_released_data(task, metric, edits, released):
    longest = 0
    for split in ("train", "val", "test"):
        texts = [(released / task / f"{split}_{side}.txt").read_text().splitlines() for side in "xy"]
        fast = columns([(tuple(x.split()), tuple(y.split())) for x, y in zip(*texts, strict=True)])
        summary = Summary()
        expert_steps(fast, load_metric(metric), EDIT, summary)
        longest = max(longest, summary.max_steps - 1)
    assert longest == edits
