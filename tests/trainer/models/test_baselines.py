"""The baselines that are no agents: their games against a plain second opinion, and that they learn."""

import random

import pytest
import torch

from tests.trainer.reference import pairs_of, small_dataset, tag_rounds, tagged, write_dataset
from trainer.agents.agent import Agent
from trainer.core.errors import BadData, InvalidConfig, MissingShards
from trainer.core.progress import Reporter
from trainer.data.contract import Contract
from trainer.data.dataset import Dataset
from trainer.game.environment import Verdict
from trainer.game.rules import rules_of, without_padding
from trainer.models.layers import IMPOSSIBLE
from trainer.models.zoo import MODELS, build_model, open_demonstrations
from trainer.training.fit import train_run
from trainer.training.presets import preset

QUIET = {"device": "cpu", "reporter": Reporter(quiet=True)}
BASELINES = [name for name, kind in MODELS.items() if kind.learns_from]


@pytest.fixture(scope="module")
def lessons(tmp_path_factory):
    """16 pairs to be learned by heart, with tags, and variants: other sources of the same targets."""
    pairs = list({source: (source, target) for source, target in pairs_of("edit", 200)}.values())[:16]
    more = [(("9", *target), target) for _, target in pairs[:20]]
    splits = {"train": pairs, "validation": pairs, "test": pairs}
    return write_dataset(tmp_path_factory.mktemp("lessons"), "edit", splits, tags=True, variants=more)


def opened(folder, model, **changes):
    dataset, config = Dataset(folder), preset("cpu", model=model, width=16, **changes)
    demonstrations = open_demonstrations(dataset, config)
    return config, demonstrations.contract, demonstrations.steps


@pytest.mark.parametrize("model", BASELINES)
def test_every_baseline_learns_its_lessons_by_heart(lessons, tmp_path, model):
    config = preset(
        "cpu", model=model, width=64, layers=1, dropout=0.0, batch=128, learning_rate=8e-3, restart=0,
        validate_every=50, schedule="cosine", train_on="expert",
        updates=600 if model == "tagging" else 200,  # most tags are KEEP, and teach little
    )  # fmt: skip
    train_run(lessons, config, tmp_path / "run", **QUIET)
    agent = Agent.from_pretrained(tmp_path / "run")
    assert agent.evaluate(split="train")["sequence_accuracy"] == 100
    game = agent.edit(" ".join(pairs_of("edit", 200)[0][0]))
    assert game.ended == "done" and game.text == " ".join(pairs_of("edit", 200)[0][1])
    assert all(len(move.action) == len(move.probabilities) for move in game.moves)


def test_what_each_of_them_reads(lessons):
    sizes = {model: len(opened(lessons, model)[2]) for model in BASELINES}
    _, contract, steps = opened(lessons, "end2end")
    assert sizes["end2end"] == 16 and contract.game == "text" and contract.max_steps == 1
    assert sizes["recurrence"] > sizes["recurrence-star"] == len(opened(lessons, "ar", train_on="expert")[2])
    assert opened(lessons, "tagging")[1].game == "tags"
    done = contract.action_ids["DONE"]
    for row in range(len(steps)):
        written = [contract.actions[token] for token in steps.actions[row].tolist() if token != done]
        source = steps.states[steps.state_of[row]]
        words = [contract.state_tokens[token - 1] for token in source.tolist() if token]
        assert (tuple(words), tuple(written)) in {(s, t) for s, t in pairs_of("edit", 200)}


def test_recurrence_needs_variants_unless_a_target_has_one_source(datasets, tmp_path):
    with pytest.raises(MissingShards, match="--variants 4"):
        opened(datasets["edit"], "recurrence")
    folder = small_dataset(tmp_path, "edit", one_source=True)
    assert len(opened(folder, "recurrence")[2]) == len(opened(folder, "recurrence-star")[2])


def test_recurrence_is_trained_without_what_the_paper_added():
    for model in ("recurrence", "recurrence-star"):
        config = preset("cpu", model=model)
        assert (config.schedule, config.adaptive) == ("constant", "off")
    assert preset("cpu", model="ar").schedule == "cosine"
    assert preset("cpu", model="recurrence", schedule="cosine").schedule == "cosine"


def encoded(contract, states):
    ids = torch.zeros(len(states), max(map(len, states), default=0) or 1, dtype=torch.long)
    for row, state in enumerate(states):
        ids[row, : len(state)] = torch.tensor([contract.state_ids[token] for token in state], dtype=torch.long)
    return ids, torch.tensor([len(state) for state in states])


def words(contract, states, lengths):
    return [
        [contract.state_tokens[token - 1] for token in state[:length]]
        for state, length in zip(states.tolist(), lengths.tolist(), strict=True)
    ]


def test_rounds_of_tags_are_the_plain_ones(lessons):
    _, contract, _ = opened(lessons, "tagging")
    rules, rng = rules_of(contract), random.Random(5)
    keep = contract.action_ids["KEEP"]
    cases = [step for source, target in pairs_of("edit", 64) for step in tag_rounds(source, target)]
    known = set(contract.actions)
    cases = [(state, tags) for state, tags in cases if set(tags) <= known and set(state) <= set(contract.state_ids)]
    for state, _ in cases[:60]:  # and tags that nobody would choose
        first = rng.choice([tag for tag in contract.actions if tag.startswith(("KEEP", "INSERT"))])
        cases.append((state, [first, *rng.choices(contract.actions, k=len(state))]))
    ids, lengths = encoded(contract, [state for state, _ in cases])
    actions = torch.full((len(cases), contract.action_length), keep)
    for row, (_, tags) in enumerate(cases):
        actions[row, : len(tags)] = torch.tensor([contract.action_ids[tag] for tag in tags])
    after, sizes, verdicts = rules.step(ids, lengths, actions)
    seen = set()
    for (state, tags), found, verdict in zip(cases, words(contract, after, sizes), verdicts.tolist(), strict=True):
        expected = tagged(state, tags)
        seen.add(verdict)
        if set(tags) == {"KEEP"}:
            assert verdict == Verdict.DONE and found == list(state)
        elif len(expected) > contract.max_state:
            assert verdict == Verdict.TOO_LONG and found == list(state)
        else:
            assert verdict == Verdict.APPLIED and found == expected
    assert seen >= {Verdict.DONE, Verdict.APPLIED, Verdict.TOO_LONG}
    wrong = actions[:1].clone()
    wrong[0, 0] = contract.action_ids["DELETE"]
    assert rules.step(ids[:1], lengths[:1], wrong)[2].item() == Verdict.WRONG_KIND
    for place in (0, 1):
        bos = actions[:1].clone()
        bos[0, place] = len(contract.actions)  # an unschooled model may say it
        after, sizes, verdict = rules.step(ids[:1], lengths[:1], bos)
        assert verdict.item() == Verdict.WRONG_KIND and words(contract, after, sizes) == [list(cases[0][0])]
    bos = torch.full_like(actions[:1], keep)
    bos[0, -1] = len(contract.actions)  # behind the last token it means nothing
    assert len(cases[0][0]) < contract.max_state and rules.step(ids[:1], lengths[:1], bos)[2].item() == Verdict.DONE


def test_a_text_ends_with_done_or_with_the_steps(lessons):
    _, contract, _ = opened(lessons, "end2end")
    rules = rules_of(contract)
    ids, lengths = encoded(contract, [("3", "+", "4", "=", "7")] * 3)
    token, done = contract.action_ids["+"], contract.action_ids["DONE"]
    actions = torch.full((3, contract.action_length), token)
    actions[0, 2], actions[1, 0], actions[1, 1] = done, len(contract.actions), done  # BOS is no text
    after, sizes, verdicts = rules.step(ids, lengths, actions)
    assert verdicts.tolist() == [Verdict.DONE, Verdict.WRONG_KIND, Verdict.APPLIED]
    found = words(contract, after, sizes)
    assert found[0] == ["+", "+"] and found[1] == ["3", "+", "4", "=", "7"]
    assert found[2] == ["+"] * min(contract.action_length, contract.max_state)
    assert without_padding(contract, ["+", "DONE", "+"], 5) == ("+", "DONE")


@pytest.mark.parametrize("model", ["end2end", "tagging"])
def test_padding_costs_nothing_and_scores_do_not_depend_on_it(tmp_path, model):
    pairs = [(target, source) for source, target in pairs_of("edit", 64)]  # targets of many lengths
    folder = write_dataset(tmp_path, "edit", {"train": pairs, "validation": pairs}, tags=True)
    config, contract, steps = opened(folder, model)
    torch.manual_seed(0)
    policy = build_model(config, contract).eval()
    batch = steps.batch(torch.arange(24))
    with torch.inference_mode():
        together = policy(batch.states, batch.lengths)
        for row in (0, 7, 23):
            length = int(batch.lengths[row])
            alone = policy(batch.states[row : row + 1, :length], batch.lengths[row : row + 1])
            assert torch.allclose(alone[0], together[row], atol=1e-5)
        taught = policy(batch.states, batch.lengths, batch.actions)
    gold = taught.gather(-1, batch.actions[..., None])[..., 0]
    if model == "tagging":
        behind = torch.arange(contract.action_length) > batch.lengths[:, None]
    else:
        ends = (batch.actions == contract.action_ids["DONE"]).int().argmax(1)
        behind = torch.arange(contract.action_length) > ends[:, None]
    assert behind.any() and not gold[behind].any() and (gold[~behind] < 0).all()
    sure = taught[behind]  # (places behind the end, v): certain of one token
    assert ((sure == 0).sum(1) == 1).all() and ((sure == 0) | (sure == IMPOSSIBLE)).all()
    assert torch.isfinite(taught).all()


@pytest.mark.parametrize("model", BASELINES)
def test_every_parameter_learns(lessons, model):
    config, contract, steps = opened(lessons, model)
    policy = build_model(config, contract)
    batch = steps.batch(torch.arange(16))
    policy(batch.states, batch.lengths, batch.actions).gather(-1, batch.actions[..., None]).sum().backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())


def test_what_is_missing_or_foreign_is_named(lessons, tmp_path):
    pairs = pairs_of("insert", 8)
    folder = write_dataset(tmp_path / "data", "insert", {"train": pairs, "validation": pairs}, task="aor")
    with pytest.raises(BadData, match="--design tags"):
        train_run(folder, preset("cpu", model="tagging"), tmp_path / "run", **QUIET)
    with pytest.raises(InvalidConfig, match="use it without --stream"):
        train_run(folder, preset("cpu", model="end2end", stream=True), tmp_path / "run", **QUIET)
    _, contract, _ = opened(lessons, "tagging")
    with pytest.raises(InvalidConfig, match="model ar requires edits, the dataset has tags"):
        build_model(preset("cpu", model="ar", width=16), contract)
    described = contract.to_json()
    assert Contract.parse(described, "x") == contract
    for wrong in ({"action_tokens": ["FLY_x"]}, {"action_length": contract.action_length + 1}, {"slots": ["tag"]}):
        with pytest.raises(BadData):
            Contract.parse(described | wrong, "x")
