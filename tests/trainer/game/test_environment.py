import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.trainer.reference import SLOTS, judge
from trainer.data.contract import Contract, OpenContract
from trainer.data.dataset import Dataset
from trainer.data.encode import load_steps
from trainer.game.environment import Environment, Verdict
from trainer.game.rules import rules_of

WORDS = ("+", "-", "2", "3")
WRITABLE = ("+", "2", "3")
MAX_STATE = 4


def contract(design, kind=Contract):
    return kind(
        config="expert",
        split="train",
        task="text",
        tokens="words",
        arithmetic=False,
        spec={},
        metric="levenshtein",
        backend={},
        design=design,
        slots=tuple(SLOTS[design]),
        state_tokens=WORDS,
        action_tokens=tuple(sorted([*WORDS, "DONE", "INSERT", "DELETE", "REPLACE"])),
        writable=WRITABLE,
        max_state=MAX_STATE,
        action_length=len(SLOTS[design]),
        max_steps=9,
    )


def play(rules, rows, width):
    environment = Environment(rules)
    lengths = torch.tensor([len(state) for state, _ in rows])
    states = torch.zeros(len(rows), width, dtype=torch.long)
    for row, (state, _) in enumerate(rows):
        states[row, : len(state)] = torch.tensor([rules.state_ids[token] for token in state], dtype=torch.long)
    actions = torch.tensor([[rules.action_ids[token] for token in action] for _, action in rows])
    states, lengths, verdicts = environment.step(states, lengths, actions)
    names = ("", *rules.state_tokens)
    for row, length in zip(states.tolist(), lengths.tolist(), strict=True):
        assert not any(row[length:])
    found = [tuple(names[i] for i in row[:n]) for row, n in zip(states.tolist(), lengths.tolist(), strict=True)]
    return list(zip(found, [Verdict(verdict).reason for verdict in verdicts.tolist()], strict=True))


@pytest.mark.parametrize("design", SLOTS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_the_batched_rules_are_the_plain_rules(design, data):
    rules = contract(design)
    state = st.lists(st.sampled_from(WORDS), max_size=MAX_STATE).map(tuple)
    positions = [f"POS_{index}" for index in range(MAX_STATE + 1)]
    slots = {
        slot: st.sampled_from([*pool, *pool, *pool, *rules.actions])
        for slot, pool in {
            "token": WRITABLE, "operation": ("INSERT", "DELETE", "REPLACE"),
            "position": positions, "left": positions, "right": positions,
        }.items()
    }  # fmt: skip
    action = st.tuples(*(slots[slot] for slot in rules.slots))
    rows = data.draw(st.lists(st.tuples(state, action), min_size=1, max_size=8))
    width = max(1, *(len(state) for state, _ in rows))
    expected = [judge(rules.slots, WRITABLE, MAX_STATE, state, action) for state, action in rows]
    assert play(rules, rows, width) == expected


UNSEEN = ("new", "naïve", "🙂", "e\u0301", r"\POS_3", "עברית")


@pytest.mark.parametrize("design", SLOTS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_open_rules_are_the_plain_rules_for_any_word_and_any_length(design, data):
    rules = contract(design, OpenContract)
    state = st.lists(st.sampled_from((*WORDS, *UNSEEN)), max_size=3 * MAX_STATE).map(tuple)
    positions = [f"POS_{index}" for index in range(3 * MAX_STATE + 2)]
    operations = ("INSERT", "DELETE", "REPLACE")
    kinds = {"token": (*WORDS, *UNSEEN), "operation": operations}
    slots = [kinds.get(slot, positions) for slot in rules.slots]
    anything = st.sampled_from(["DONE", *operations, *positions, *WORDS, *UNSEEN])
    action = st.tuples(*(st.one_of(st.sampled_from(pool), st.sampled_from(pool), anything) for pool in slots))
    rows = data.draw(st.lists(st.tuples(state, action), min_size=1, max_size=8))
    lengths = torch.tensor([len(state) for state, _ in rows])
    states = torch.zeros(len(rows), max(1, int(lengths.max())), dtype=torch.long)
    for row, (tokens, _) in enumerate(rows):
        states[row, : len(tokens)] = torch.tensor([rules.word_id(token) for token in tokens], dtype=torch.long)
    actions = torch.tensor([[rules.action_id(token) for token in action] for _, action in rows])
    assert [tuple(rules.action_names(action)) for action in actions.tolist()] == [action for _, action in rows]
    after, sizes, verdicts = rules_of(rules).step(states, lengths, actions)
    found = [
        (tuple(rules.names[word] for word in ids[:size]), Verdict(verdict).reason)
        for ids, size, verdict in zip(after.tolist(), sizes.tolist(), verdicts.tolist(), strict=True)
    ]
    assert found == [judge(rules.slots, (*WORDS, *UNSEEN), 1 << 30, state, action) for state, action in rows]


@pytest.mark.parametrize(
    ("design", "state", "action", "reason"),
    [
        ("insert", "2 3", "POS_2 +", "applied"),
        ("insert", "2 3", "DONE DONE", "done"),
        ("insert", "2 3", "DONE +", "partly-done"),
        ("insert", "2 3", "+ +", "wrong-kind"),
        ("insert", "2 3", "POS_0 POS_0", "wrong-kind"),
        ("insert", "2 3", "POS_3 +", "out-of-range"),
        ("insert", "2 3", "POS_1 -", "not-writable"),
        ("insert", "2 3 2 3", "POS_1 +", "too-long"),
        ("edit", "2 3", "DELETE POS_1 POS_1", "applied"),
        ("edit", "2 3", "DELETE POS_1 POS_0", "delete-two-positions"),
        ("edit", "2 3", "DELETE POS_1 +", "wrong-kind"),
        ("edit", "2 3", "REPLACE POS_2 +", "out-of-range"),
        ("edit", "2 3", "REPLACE POS_1 POS_1", "wrong-kind"),
        ("span", "2 3", "POS_1 POS_0 +", "out-of-range"),
        ("span", "2 3", "POS_0 POS_2 +", "out-of-range"),
        ("span", "2 3", "POS_0 POS_1 +", "applied"),
        ("span-3", "2 3", "+ POS_0 POS_1", "applied"),
    ],
)
def test_reasons(design, state, action, reason):
    assert play(contract(design), [(tuple(state.split()), action.split())], 4)[0][1] == reason


@pytest.mark.parametrize("design", SLOTS)
def test_every_trajectory_replays_to_its_next_state(datasets, design):
    dataset = Dataset(datasets[design])
    footers = dataset.footers("augmented", "train")
    rules = dataset.contract(footers)
    steps = load_steps(dataset, footers, rules)
    batch = steps.batch(steps.taken)
    states, lengths, verdicts = Environment(rules).step(batch.states, batch.lengths, batch.actions)
    last = torch.zeros(len(verdicts), dtype=torch.bool)
    last[steps.starts[1:] - 1] = True
    assert (verdicts[last] == int(Verdict.DONE)).all() and (verdicts[~last] == int(Verdict.APPLIED)).all()
    follows = torch.arange(len(verdicts))[~last]
    width = batch.states.shape[1]
    assert torch.equal(states[follows, :width], batch.states[follows + 1])
    assert torch.equal(lengths[follows], batch.lengths[follows + 1])


def test_an_id_beyond_the_vocabulary_is_of_no_kind():
    rules = contract("insert")
    action = torch.tensor([[rules.action_ids["POS_0"], len(rules.actions)]])
    verdicts = Environment(rules).step(torch.tensor([[1]]), torch.tensor([1]), action)[2]
    assert Verdict(int(verdicts[0])) is Verdict.WRONG_KIND


def test_the_longest_state_bounds_the_width():
    rules = replace(contract("insert"), max_state=2)
    assert play(rules, [(("2",), ("POS_1", "3"))], 2) == [(("2", "3"), "applied")]
