"""The editor learns, plays and is kept like every agent, and reads what training never showed."""

import json
import random
import shutil
from itertools import pairwise

import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.pages import head_and_body
from tests.trainer.reference import pairs_of, write_dataset
from tests.trainer.runs import QUIET, Stop, Stopper, same, story, weights
from trainer.agents.agent import Agent
from trainer.agents.evaluation import evaluate_run
from trainer.cli import main
from trainer.core.errors import InvalidConfig
from trainer.data.dataset import Dataset
from trainer.data.encode import load_pairs
from trainer.game.play import Decision
from trainer.models.editor.certainty import best_bar, pick
from trainer.models.editor.model import Editor
from trainer.models.zoo import build_model, open_demonstrations
from trainer.publishing.publish import publish
from trainer.report.write import report
from trainer.training.fit import train_run
from trainer.training.presets import preset
from trainer.training.run import Description

SMALL = {"width": 32, "layers": 1, "dropout": 0.0, "learning_rate": 5e-3, "batch": 16}
NOUNS = ["cat", "dog", "tree", "house", "river", "apple", "bread", "stone", "cloud", "garden", "letter", "window"]


def sentences(count, seed=0):
    """Sentences with three kinds of mistakes: ``i`` for ``I``, a missing full stop, a filler."""
    rng, pairs = random.Random(seed), {}
    while len(pairs) < count:
        one, two = rng.sample(NOUNS, 2)
        target = ["I", rng.choice(["see", "like"]), "the", one, "and", "the", two, "."]
        source = list(target)
        if rng.random() < 0.3:
            source.insert(4, "um")
        if rng.random() < 0.5:
            source.pop()
        if rng.random() < 0.5:
            source[0] = "i"
        pairs[tuple(source)] = tuple(target)
    return list(pairs.items())


@pytest.fixture(scope="session")
def corrector(tmp_path_factory):
    """A run that has learned to correct small sentences."""
    root = tmp_path_factory.mktemp("corrector")
    pairs = sentences(80)
    splits = {"train": pairs[:64], "validation": pairs[64:72], "test": pairs[72:]}
    data = write_dataset(root / "data", "edit", splits, arithmetic=False)
    train_run(data, preset("cpu", model="editor", updates=200, **SMALL), root / "run", **QUIET)
    return root / "run"


@pytest.fixture
def agent(corrector):
    return Agent.from_pretrained(corrector)


def test_it_corrects_sentences_it_has_not_seen(agent):
    result = agent.evaluate(split="test")
    assert result["sequence_accuracy"] == 100 and result["unreadable"] == 0 and result["refused"] == 0
    game = agent.edit("i see the cat um and the dog")
    assert game.text == "I see the cat and the dog ." and game.ended == "done"
    assert [move.action[0] for move in game.moves].count("DELETE") == 1 and len(game.moves) == 4


@pytest.mark.parametrize(
    "word", ["zebra", "🙂", "e\u0301te\u0301", "naïve", "DONE", "POS_3", "שלום", "pizza,", "x" * 5000, "\u202e", "a\tb"]
)
def test_words_that_training_never_saw_are_kept(agent, word):
    """A new word is read as others of its kind are; what an agent this small makes of it may vary, not the text."""
    source = f"I see the {word} and the dog ."
    game = agent.edit(source)
    state = source.split(" ")
    for move in game.moves[:-1]:
        operation, place, new = move.action
        at = int(place[4:])
        state[at : at + (operation != "INSERT")] = [] if operation == "DELETE" else [new]
    assert game.ended == "done" and game.text == " ".join(state)
    assert word in game.text or len(game.moves) > 1


def test_most_new_words_are_left_alone(agent):
    texts = [f"I see the {word} and the dog ." for word in ("zebra", "🙂", "Ångström", "naïve", "e\u0301", "POS_3")]
    assert sum(game.text == game.source for game in agent.edit(texts)) >= 5


def test_any_line_comes_back(agent):
    texts = ["", " ", "   ", "zebra", "I see the cat and the dog .", "🙂 🙂", "\\e \\s"]
    games = agent.edit(texts)
    assert [game.source for game in games] == texts and games[4].text == texts[4]
    assert {game.ended for game in games} <= {"done", "limit"}
    untouched = [game for game in games if len(game.moves) == 1]
    assert all(game.text == game.source for game in untouched) and untouched


def test_a_game_ends_by_the_length_of_its_own_text(agent):
    """An agent that never says DONE gives a text the same result alone and beside longer ones."""

    def decide(states, lengths, edits=1):
        insert = [agent.contract.action_id(token) for token in ("INSERT", "POS_0", "the")]
        return Decision.drawn(torch.tensor([insert] * len(states)))

    agent.policy.decide = decide
    texts = ["i see", " ".join(["the cat"] * 20), "um " * 9 + "dog", ""]
    games, most = agent.edit(texts), agent.contract.max_steps
    assert games == [agent.edit(text) for text in texts]
    assert [len(game.moves) for game in games] == [most, 40, 10, most] and most < 10
    sources = load_pairs(Dataset(agent.description.dataset), "test", agent.contract).sources
    steps = [max(most, len(source)) for source in sources]
    assert agent.evaluate(split="test")["steps_per_game"] == sum(steps) / len(steps) and len(set(steps)) > 1


def test_several_edits_a_round_end_the_same(agent):
    text = " ".join(["i see the cat um and the dog ."] * 3)
    one, several = agent.edit(text), agent.edit(text, edits_per_round=8)
    assert one.text == several.text and len(several.moves) == len(one.moves)
    calls = []
    decide = agent.policy.decide
    agent.policy.decide = lambda *given: calls.append(given) or decide(*given)
    agent.edit(text, edits_per_round=8)
    assert len(calls) < len(one.moves)
    for move in several.moves:
        assert move.verdict in ("applied", "done") and all(0 <= chance <= 1 for chance in move.probabilities)
    with pytest.raises(InvalidConfig, match="expected int >= 1"):
        agent.edit(text, edits_per_round=0)


def test_lines_of_any_kind_come_back_byte_for_byte(corrector):
    """What was not edited is as it was, whatever its words, its length and its end."""
    long = "I see the cat and the dog . " * 12_499
    given = [
        "i see the zebra and the dog .\r\n",
        "\n",
        "\r\n",
        "I see the 👩‍👩‍👧 and the e\u0301te\u0301 .\n",
        "I see the שלום and the \u202eمرحبا\u202c .\r\n",
        "I see the POS_3 and the DONE .\n",
        "I see the \\e and  the \tx .\n",
        long + "i see the zebra and the dog .\n",  # 100,000 tokens
        "I see the cat and the dog .",
    ]

    def edit(lines, *options):
        result = CliRunner().invoke(main, ["edit", str(corrector), *options], input="".join(lines).encode())
        assert result.exit_code == 0 and not result.stderr, result.output
        return result.stdout_bytes.decode()

    short = [line for line in given if len(line) < 1000]
    records = [json.loads(line) for line in edit(short, "--json").splitlines()]
    ends = [line[len(line.rstrip("\r\n")) :] for line in short]
    found = edit(given, "--edits-per-round", "8").splitlines(keepends=True)
    assert found[0] == given[0].replace("i see", "I see") and found[-1] == given[-1]
    assert found[7] == long + "I see the zebra and the dog .\n"
    assert found[:7] + found[8:] == [record["text"] + end for record, end in zip(records, ends, strict=True)]
    untouched = [at for at, record in enumerate(records) if record["text"] == record["source"]]
    assert len(untouched) >= 4 and all(found[:7][at] == given[at] for at in untouched if at < 7)


def test_edits_of_a_round_do_not_touch():
    sure, kinds = torch.rand(4, 41), torch.randint(1, 3, (4, 41))
    calm = torch.tensor([0.0, 0.0, 0.0, 1.0])
    half = calm.clamp(min=0.5)
    rows, places, classes, chosen = pick(sure, kinds, calm, half, 100, spans=True)
    assert len(rows) > 20 and (chosen > 0.5).all() and 3 not in rows
    # No place is edited more likely than not, but something must be done.
    assert pick(sure / 2, kinds, calm, half, 100, spans=True)[0].tolist() == [0, 1, 2]
    for row in range(4):
        found = [(p // 2, p // 2 + p % 2 * k) for r, p, k in zip(rows, places, classes, strict=True) if r == row]
        found.sort()
        assert all(one[1] < two[0] for one, two in pairwise(found))


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.9]), st.booleans()), min_size=1), st.integers(0, 9))
def test_no_other_bar_has_a_higher_f(edits, more):
    """Against every other bar, with edits as certain as each other made together."""
    gold = sum(right for _, right in edits) + more

    def f(bar):
        above = [right for sure, right in edits if sure > bar]
        return 5 * sum(above) / (gold + 4 * len(above)) if above else 0

    sure, right = (torch.tensor(column) for column in zip(*edits, strict=True))
    found = best_bar(sure, right, gold)
    assert f(found) == pytest.approx(max(map(f, (0.05, 0.15, 0.25, 0.4, 0.7))))


@pytest.mark.parametrize("design", ["insert", "span-2"])
def test_it_learns_other_designs_by_heart(tmp_path, design):
    pairs = list({source: (source, target) for source, target in pairs_of(design, 200)}.values())[:16]
    data = write_dataset(tmp_path / "data", design, {"train": pairs, "validation": pairs})
    train_run(
        data,
        preset("cpu", model="editor", updates=300, **(SMALL | {"layers": 2, "learning_rate": 2e-3})),
        tmp_path / "run",
        **QUIET,
    )
    assert Agent.from_pretrained(tmp_path / "run").evaluate(split="train")["sequence_accuracy"] == 100


def test_resuming_ends_with_the_same_bits(tmp_path):
    pairs = sentences(40)
    data = write_dataset(tmp_path / "data", "edit", {"train": pairs[:32], "validation": pairs[32:]}, arithmetic=False)
    config = preset("cpu", model="editor", updates=12, **(SMALL | {"dropout": 0.3}))
    train_run(data, config, tmp_path / "whole", **QUIET, save_every=4)
    with pytest.raises(Stop):
        train_run(data, config, tmp_path / "cut", device="cpu", reporter=Stopper(7), save_every=3)
    train_run(data, config, tmp_path / "cut", **QUIET, resume=True, save_every=3)
    for name in ("last", "best"):
        assert same(weights(tmp_path / "cut", name), weights(tmp_path / "whole", name))
    assert story(tmp_path / "cut") == story(tmp_path / "whole")


def test_a_published_editor_plays_the_same(corrector, agent, tmp_path):
    publish(corrector, str(tmp_path / "published"))
    texts = ["i see the zebra um and the dog", "🙂"]
    assert Agent.from_pretrained(tmp_path / "published").edit(texts) == agent.edit(texts)
    card = (tmp_path / "published/README.md").read_text()
    assert "It reads texts of any length with any words, and plays up to" in card and "vocabulary" not in card


def test_the_f_of_its_edits_is_on_the_card_and_in_a_report(corrector, tmp_path):
    run = shutil.copytree(corrector, tmp_path / "runs" / "corrector")
    f = evaluate_run(run, "cpu")["edits"]["f0.5"]
    publish(run, str(tmp_path / "published"))
    head, card = head_and_body((tmp_path / "published/README.md").read_text())
    assert "| F0.5 of edits |" in card and f"| {f:.2f} % |" in card
    assert head["model-index"][0]["results"][0]["metrics"][-1] == {"type": "f0.5", "name": "F0.5 of edits", "value": f}
    lines = report(tmp_path / "runs", tmp_path / "report", timed=False)[1]
    assert ["TEXT", "edits", "Editor", f"{f:.2f}"] in [line.split() for line in lines]


def test_words_of_a_validation_that_training_lacks_are_read(tmp_path):
    pairs = sentences(24)
    other = [(("i", "see", "zebras"), ("I", "see", "zebras", "!"))]
    data = write_dataset(tmp_path / "data", "edit", {"train": pairs, "validation": other}, arithmetic=False)
    train_run(data, preset("cpu", model="editor", updates=3, **SMALL), tmp_path / "run", **QUIET)
    line = story(tmp_path / "run")[-1]["validation"]
    assert line["unreadable"] == 0 and line["unreadable_steps"] == 0 and line["pairs"] == 1


def test_a_stream_is_refused_by_name(tmp_path, insert):
    with pytest.raises(InvalidConfig, match="^editor reads its training data into memory; use it without --stream$"):
        train_run(insert, preset("cpu", model="editor", stream=True), tmp_path / "run", **QUIET)


def test_a_batch_is_the_mean_of_its_ranks(insert):
    config = preset("cpu", model="editor", updates=4, **SMALL)
    data = open_demonstrations(Dataset(insert), config)
    config, knowledge = Editor.study(data, config)
    model = build_model(config, data.contract, knowledge)
    runtimes = [type("Part", (), {"rank": rank, "world": 2}) for rank in range(2)]
    whole = next(model.sampler(data, config, type("All", (), {"rank": 0, "world": 1})).updates(0))
    loss = model.judge(model(*whole.batch.inputs), whole.batch)[0].mean(0)
    parts = []
    for runtime in runtimes:
        update = next(model.sampler(data, config, runtime).updates(0))
        parts.append(update.share * model.judge(model(*update.batch.inputs), update.batch)[0].mean(0))
    torch.testing.assert_close(sum(parts) / 2, loss)


def test_it_is_the_default_for_text_and_the_log_says_so(tmp_path):
    pairs = sentences(24)
    splits = {"train": pairs[:16], "validation": pairs[16:]}
    for arithmetic, model in ((False, "editor"), (True, "planner")):
        data = write_dataset(tmp_path / f"data-{model}", "edit", splits, arithmetic=arithmetic)
        out = tmp_path / f"run-{model}"
        done = CliRunner().invoke(main, ["fit", str(data), "--out", str(out), "--updates", "2", "--device", "cpu"])
        assert done.exit_code == 0, done.output
        assert Description.read(out / "config.json").config.model == model
        assert ("(the default for text: it reads any words and any length)" in done.stderr) == (model == "editor")
    stream = ["--stream", "--width", "8", "--updates", "2", "--device", "cpu", "--train-on", "expert"]
    done = CliRunner().invoke(main, ["fit", str(tmp_path / "data-editor"), "--out", str(tmp_path / "s"), *stream])
    assert done.exit_code == 0 and "nar-star" in done.stderr and "--stream: " in done.stderr


def test_edits_per_round_on_the_command_line(corrector, tmp_path):
    text = "i see the cat um and the dog"
    runs = {}
    for edits in (1, 8):
        done = CliRunner().invoke(main, ["edit", str(corrector), text, "--json", "--edits-per-round", str(edits)])
        runs[edits] = json.loads(done.stdout)
        result = CliRunner().invoke(main, ["evaluate", str(corrector), "--json", "--edits-per-round", str(edits)])
        assert json.loads(result.stdout)["edits_per_round"] == edits
        assert (corrector / "evaluation-test.json").exists()  # written by the paper's game, kept by the other
    assert json.loads((corrector / "evaluation-test.json").read_text())["edits_per_round"] == 1
    assert runs[1]["text"] == runs[8]["text"] == "I see the cat and the dog ."
    pairs = pairs_of("edit", 20)
    data = write_dataset(tmp_path / "data", "edit", {"train": pairs, "validation": pairs})
    train_run(data, preset("fast", updates=2), tmp_path / "planner", **QUIET)
    done = CliRunner().invoke(main, ["edit", str(tmp_path / "planner"), "2", "--edits-per-round", "2"])
    assert done.exit_code == 2 and "--edits-per-round is for the model editor, not for planner" in done.stderr
