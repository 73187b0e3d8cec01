"""The tagger reads and is kept as the editor, but tags all tokens of a text at once."""

import random

import pytest
import torch

from tests.trainer.models.editor.test_editor import SMALL, sentences
from tests.trainer.reference import pairs_of, write_dataset
from tests.trainer.runs import QUIET, Stop, Stopper, same, story, weights
from trainer.agents.agent import Agent
from trainer.core.errors import BadData, InvalidConfig
from trainer.data.dataset import Dataset
from trainer.game.play import play_round
from trainer.game.rules import rules_of
from trainer.models.editor import tagger
from trainer.models.editor.edits import Edit
from trainer.models.editor.tagger import Tagger
from trainer.models.editor.tags import DELETE, FIRST, KEEP, OTHER
from trainer.models.editor.trajectories import EditorBatch, Trajectories
from trainer.models.zoo import build_model, open_demonstrations
from trainer.publishing.publish import publish
from trainer.training.fit import train_run
from trainer.training.presets import preset

WRONG = "i see the cat um and the dog"
RIGHT = "I see the cat and the dog ."


def write(folder, pairs, validation, test=()):
    splits = {"train": pairs, "validation": validation} | ({"test": test} if test else {})
    return write_dataset(folder, "edit", splits, arithmetic=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has learned to correct small sentences."""
    root, pairs = tmp_path_factory.mktemp("tagger"), sentences(80)
    data = write(root / "data", pairs[:64], pairs[64:72], pairs[72:])
    train_run(data, preset("cpu", model="tagger", updates=200, **SMALL), root / "run", **QUIET)
    return root / "run"


@pytest.fixture
def agent(run):
    return Agent.from_pretrained(run)


def build(data, **settings):
    config = preset("cpu", model="tagger", updates=4, **(SMALL | settings))
    opened = open_demonstrations(Dataset(data), config)
    config, knowledge = Tagger.study(opened, config)
    return opened, knowledge, build_model(config, opened.contract, knowledge).eval()


def executed(state, tags, names):
    """A round, the plain way: what each slot leaves."""
    after = []
    for slot, tag in enumerate(tags):
        own = state[slot - 1 : slot] if slot else []
        kind, word = names(slot, tag) or ("keep", None)
        after += {"keep": own, "delete": [], "replace": [word], "insert": [*own, word]}[kind]
    return after


def test_it_corrects_sentences_it_has_not_seen(agent, run):
    result = agent.evaluate(split="test")
    assert result["sequence_accuracy"] == 100 and result["unreadable"] == 0 and result["refused"] == 0
    validation = story(run)[-1]["validation"]
    assert validation["edits"]["f0.5"] == 100 and validation["action_accuracy"] == 100 and 0 < validation["bar"] < 1


def test_all_edits_are_made_at_once(agent):
    calls, decide = [], agent.policy.decide
    agent.policy.decide = lambda *given: calls.append(given) or decide(*given)
    game = agent.edit(WRONG)
    assert game.text == RIGHT and game.ended == "done"
    assert {move.action[0] for move in game.moves} == {"INSERT", "DELETE", "REPLACE", "DONE"} and len(game.moves) == 4
    assert len(calls) == 2  # the three edits, then DONE
    with pytest.raises(InvalidConfig, match="^--edits-per-round is for the model editor, not for tagger$"):
        agent.edit(WRONG, edits_per_round=2)


def test_any_line_comes_back(agent):
    texts = ["", " ", "zebra", RIGHT, "🙂 🙂", "\\e \\s", "x" * 5000, "I see the POS_3 and the DONE ."]
    games = agent.edit(texts)
    assert [game.source for game in games] == texts and games[3].text == RIGHT
    assert {game.ended for game in games} <= {"done", "limit"}
    assert all(game.text == game.source for game in games if len(game.moves) == 1)
    words = ("zebra", "🙂", "Ångström", "naïve", "e\u0301", "POS_3")
    games = agent.edit([WRONG.replace("cat", word) for word in words])
    assert sum(game.text == RIGHT.replace("cat", word) for game, word in zip(games, words, strict=True)) >= 5


def test_slots_that_are_scored_together_do_not_matter(agent, monkeypatch):
    texts = [WRONG, RIGHT, " ".join([WRONG] * 40)]
    together = agent.edit(texts)
    monkeypatch.setattr(tagger, "AT_ONCE", 3)
    for one, other in zip(agent.edit(texts), together, strict=True):
        assert one.text == other.text and [move.action for move in one.moves] == [move.action for move in other.moves]


@torch.inference_mode()
def test_uncertain_edits_are_kept_out(agent):
    policy, contract = agent.policy, agent.contract
    texts = [source for source, _ in sentences(80)[72:]] + [("um", "see", "the", "zebra", "i")]
    made = {}
    for bar in (0.0, 0.1, 0.5, 0.9, 1.0):
        policy.bar.fill_(bar)
        made[bar] = set()
        for text in texts:
            ids = torch.tensor([[contract.word_id(word) for word in text]])
            decision = policy.decide(ids, torch.tensor([len(text)]))
            for action, chances in zip(decision.actions[0].tolist(), decision.chances[0].tolist(), strict=True):
                if action != policy.classes.done:
                    assert chances[0] > bar
                    made[bar].add((text, *action))
    counts = [len(edits) for edits in made.values()]
    assert counts[0] > counts[2] > counts[-1] == 0
    assert made[1.0] <= made[0.9] <= made[0.5] <= made[0.1] <= made[0.0]


@torch.inference_mode()
def test_nothing_is_edited_where_nothing_looks_wrong(agent):
    """The other head has a veto, as in GECToR."""
    agent.policy.wrong.bias.copy_(torch.tensor([99.0, -99.0]))
    assert agent.edit(WRONG).text == WRONG


def test_tags_are_the_edits_that_fit_into_one_round(tmp_path):
    data, _, model = build(write(tmp_path / "data", sentences(40), sentences(50)[40:]))
    shown = Trajectories(model.classes, data.steps)
    kinds = set()
    for examples in shown.sources(8):
        gold = model.tags.gold(*EditorBatch.of(model.classes, examples).inputs[2:]).tolist()
        for (state, edits), tags in zip(examples, gold, strict=True):
            inside = tags[: len(state) + 1]
            found = {model.tags.edit(slot, tag, state) for slot, tag in enumerate(inside) if tag > KEEP}
            assert found == {*edits} and set(tags[len(state) + 1 :]) <= {-1}
            kinds |= {tag if tag < FIRST else FIRST for tag in inside}
    assert kinds == {KEEP, DELETE, FIRST}


@torch.inference_mode()
def test_before_training_hardly_anything_is_edited(tmp_path):
    _, _, model = build(write(tmp_path / "data", sentences(40), sentences(50)[40:]))
    states = torch.arange(1, 9)[None]
    keep = model.certainty(*model.slots(states, torch.tensor([8])))[3].exp()
    assert keep.mean() > 0.8 and model.decide(states, torch.tensor([8])).actions.tolist() == [[model.classes.done]]


def test_what_does_not_fit_waits_and_what_no_tag_makes_is_told_apart(tmp_path):
    _, _, model = build(write(tmp_path / "data", sentences(40), sentences(50)[40:]))
    big, small, full, new = (model.contract.word_id(word) for word in ("I", "i", ".", "zebra"))
    state = [small, new]

    def said(*edits):
        return model.tags.gold(*EditorBatch.of(model.classes, [(state, [*edits])]).inputs[2:])[0].tolist()

    replaced, inserted = said(Edit(0, 1, big))[1], said(Edit(1, 1, full))[1]
    assert said(Edit(0, 1, big), Edit(1, 1, full)) == [KEEP, replaced, KEEP] and inserted != replaced
    assert said(Edit(0, 0, full), Edit(0, 1, None)) == [inserted, DELETE, KEEP]
    assert said(Edit(0, 1, new)) == [KEEP, OTHER, KEEP] == said(Edit(1, 1, new))
    assert model.tags.edit(0, DELETE, state) is None and model.tags.edit(0, replaced, state) is None
    assert model.tags.edit(1, replaced, [big]) is None  # is there already


def test_a_round_leaves_what_its_tags_say(tmp_path):
    """Whatever stands beside what: insertions before and behind tokens that are deleted or replaced."""
    _, _, model = build(write(tmp_path / "data", sentences(40), sentences(50)[40:]))
    rules, draw = rules_of(model.contract), random.Random(0)
    for _ in range(50):
        state = [draw.randrange(1, 9) for _ in range(draw.randrange(6))]
        tags = [draw.choice([KEEP, DELETE, *range(FIRST, len(model.tags))]) for _ in range(len(state) + 1)]

        def names(slot, tag, state=state):
            edit = model.tags.edit(slot, tag, state) if tag else None
            if edit is None:
                return None
            return "insert" if edit.start == edit.stop else "delete" if edit.new is None else "replace", edit.new

        found = [model.tags.edit(slot, tag, state) for slot, tag in enumerate(tags) if tag]
        decision = model.decision([[(edit, 1.0, 1.0) for edit in found if edit]], [1.0], torch.device("cpu"))
        states = torch.tensor([state or [0]])
        *_, last = play_round(rules, states, torch.tensor([len(state)]), decision)
        after, length = last.after
        assert after[0, : int(length)].tolist() == executed(state, tags, names)


def test_rare_edits_have_no_tag_of_their_own(tmp_path, monkeypatch):
    folder = write(tmp_path / "data", sentences(40), sentences(50)[40:])
    assert len(build(folder)[1].tags) > 1
    monkeypatch.setattr("trainer.models.editor.tags.MOST", 1)
    data, knowledge, model = build(folder)
    assert len(knowledge.tags) == 1 and model.tag.out_features == FIRST + 1
    update = next(model.sampler(data, preset("cpu", model="tagger", updates=4, **SMALL), Alone).updates(0))
    assert (model.tags.gold(*update.batch.inputs[2:]) == OTHER).any()
    assert model.judge(model(*update.batch.inputs), update.batch)[0].isfinite().all()


class Alone:
    rank, world = 0, 1


def test_without_a_bar_the_most_probable_tag_decides(tmp_path):
    pairs = sentences(80)
    data = write(tmp_path / "data", pairs[:64], pairs[64:])
    config = preset("cpu", model="tagger", updates=150, select="accuracy", **SMALL)
    train_run(data, config, tmp_path / "run", **QUIET)
    agent = Agent.from_pretrained(tmp_path / "run")
    assert float(agent.policy.bar) == 0 and "bar" not in story(tmp_path / "run")[-1]["validation"]
    assert agent.edit(WRONG).text == RIGHT


def test_it_learns_insertions_by_heart(tmp_path):
    pairs = list(dict(pairs_of("insert", 200)).items())[:16]
    data = write_dataset(tmp_path / "data", "insert", {"train": pairs, "validation": pairs})
    small = SMALL | {"layers": 2, "learning_rate": 2e-3}
    train_run(data, preset("cpu", model="tagger", updates=300, **small), tmp_path / "run", **QUIET)
    assert Agent.from_pretrained(tmp_path / "run").evaluate(split="train")["sequence_accuracy"] == 100


def test_resuming_ends_with_the_same_bits(tmp_path):
    pairs = sentences(40)
    data = write(tmp_path / "data", pairs[:32], pairs[32:])
    config = preset("cpu", model="tagger", updates=12, **(SMALL | {"dropout": 0.3}))
    train_run(data, config, tmp_path / "whole", **QUIET, save_every=4)
    with pytest.raises(Stop):
        train_run(data, config, tmp_path / "cut", device="cpu", reporter=Stopper(7), save_every=3)
    train_run(data, config, tmp_path / "cut", **QUIET, resume=True, save_every=3)
    for name in ("last", "best"):
        assert same(weights(tmp_path / "cut", name), weights(tmp_path / "whole", name))
    assert story(tmp_path / "cut") == story(tmp_path / "whole")


def test_a_published_tagger_plays_the_same(run, agent, tmp_path):
    publish(run, str(tmp_path / "published"))
    texts = [WRONG, "i see the zebra um and the dog", "🙂", ""]
    assert Agent.from_pretrained(tmp_path / "published").edit(texts) == agent.edit(texts)


def test_spans_and_foreign_tags_are_refused(tmp_path, datasets):
    with pytest.raises(InvalidConfig, match="^tagger edits single tokens, the dataset has spans$"):
        train_run(datasets["span"], preset("cpu", model="tagger", updates=2), tmp_path / "run", **QUIET)
    data, knowledge, _ = build(write(tmp_path / "data", sentences(24), sentences(30)[24:]))
    values = {"variants": list(knowledge.variants)}
    for wrong, why in (([3, 1], "expected ascending numbers"), ([1 << 20], "1048576 is beyond the words")):
        with pytest.raises(BadData, match=f"field tags: {why}"):
            Tagger.read_knowledge(values | {"tags": wrong}, data.contract, "config.json")
