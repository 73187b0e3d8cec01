import json
import random
import shutil
import signal
import sys
from contextlib import nullcontext

import pytest
import torch
from safetensors.torch import save_file

from tests.trainer.reference import pairs_of, small_dataset, write_dataset
from tests.trainer.runs import QUIET, Stop, Stopper, same, story, weights
from trainer.agents.agent import Agent
from trainer.core import device
from trainer.core.config import Config
from trainer.core.device import Runtime
from trainer.core.errors import BadData, Failed, FolderConflict, Interrupted, InvalidConfig, TrainerError
from trainer.core.interrupt import Interrupt
from trainer.core.progress import Reporter
from trainer.data.batches import EpochOrder, MemorySampler
from trainer.data.dataset import Dataset
from trainer.data.stream import StreamSampler
from trainer.models.zoo import MODELS, open_demonstrations
from trainer.training.checkpoint import load_checkpoint, save_checkpoint
from trainer.training.fit import train_run
from trainer.training.loop import Loop, learning_rate
from trainer.training.presets import preset
from trainer.training.run import Description

TINY = {"width": 16, "layers": 1, "batch": 64, "updates": 0, "restart": 2, "epochs": 3}


def tiny(**changes):
    return preset("cpu", **(TINY | changes))


@pytest.fixture(scope="module")
def lessons(tmp_path_factory):
    """24 pairs a task, each source once, to be learned by heart."""
    root = tmp_path_factory.mktemp("lessons")
    folders = {}
    for design in ("insert", "edit", "span"):
        pairs = list({source: (source, target) for source, target in pairs_of(design, 200)}.values())[:24]
        folders[design] = write_dataset(root / design, design, {"train": pairs, "validation": pairs})
    return folders


@pytest.mark.parametrize("design", ["insert", "edit", "span"])
@pytest.mark.parametrize("model", [name for name, kind in MODELS.items() if kind.streamable and not kind.learns_from])
def test_every_model_learns_every_task_by_heart(lessons, tmp_path, model, design):
    config = preset(
        "cpu", model=model, width=64, layers=1, dropout=0.0, train_on="expert", batch=128, learning_rate=1e-2,
        updates=150, restart=0, validate_every=10,
    )  # fmt: skip
    train_run(lessons[design], config, tmp_path / "run", **QUIET)
    scores = Agent.from_pretrained(tmp_path / "run").evaluate(split="train")
    assert scores["sequence_accuracy"] == 100


@pytest.mark.parametrize("changes", [{}, {"epoch": "pairs"}, {"stream": True, "stream_rows": 150}])
def test_one_seed_one_result_and_another_seed_another(tmp_path, changes):
    data = small_dataset(tmp_path / "data", "edit", shards=2, row_group_size=60)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train_run(data, tiny(seed=seed, **changes), tmp_path / name, **QUIET)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert same(weights(tmp_path / "a", "best"), weights(tmp_path / "b", "best"))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


@pytest.mark.parametrize(
    "changes", [{"epoch": "pairs"}, {"optimizer": "muon", "warm_up": 3}, {"stream": True, "stream_rows": 150}]
)
def test_resuming_from_any_update_ends_with_the_same_bits(tmp_path, changes):
    data = small_dataset(tmp_path / "data", "edit", shards=2, row_group_size=60)
    whole = train_run(data, tiny(**changes), tmp_path / "whole", **QUIET, save_every=4)
    for after in sorted({1, whole.updates // 2, whole.updates - 1}):
        run = tmp_path / f"cut-{after}"
        with pytest.raises(Stop):
            train_run(data, tiny(**changes), run, device="cpu", reporter=Stopper(after), save_every=3)
        again = train_run(data, tiny(**changes), run, **QUIET, resume=True, save_every=3)
        assert again.updates == whole.updates and again.best == whole.best
        for name in ("last", "best"):
            assert same(weights(run, name), weights(tmp_path / "whole", name))
        assert story(run) == story(tmp_path / "whole")
        assert not list(run.glob(".*"))


def test_the_bar_is_closed_however_a_run_ends(insert, tmp_path):
    closed = []
    for number, after in enumerate((2, 1000)):
        reporter = Stopper(after)
        reporter.close = lambda number=number: closed.append(number)
        with pytest.raises(Stop) if after < 1000 else nullcontext():
            train_run(insert, tiny(), tmp_path / str(number), device="cpu", reporter=reporter)
    assert closed == [0, 1]


def test_a_run_cut_between_the_last_update_and_the_end_of_an_epoch_tells_the_same_story(insert, tmp_path, monkeypatch):
    train_run(insert, tiny(), tmp_path / "whole", **QUIET, save_every=1)
    finish = Loop._finish_epoch
    monkeypatch.setattr(
        Loop, "_finish_epoch", lambda self, stop: finish(self, stop) if self.position.epoch < 1 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        train_run(insert, tiny(), tmp_path / "cut", **QUIET, save_every=1)
    monkeypatch.undo()
    train_run(insert, tiny(), tmp_path / "cut", **QUIET, save_every=1, resume=True)
    whole, cut = (
        [json.loads(line) | {"seconds": 0} for line in (tmp_path / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("whole", "cut")
    )
    assert whole == cut and same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


class Tapper:
    """Ctrl-C at a certain line of the loop, or none: so it can count them."""

    OUTER = Loop.train.__code__
    INNER = (Loop._epoch.__code__, Loop._finish_epoch.__code__, save_checkpoint.__code__)

    def __init__(self, at=-1):
        self.at, self.lines, self.training = at, 0, False

    def __enter__(self):
        sys.settrace(self.enter)
        return self

    def __exit__(self, *error):
        sys.settrace(None)

    def enter(self, frame, event, value):
        self.training |= frame.f_code is self.OUTER
        return self.line if frame.f_code is self.OUTER or (self.training and frame.f_code in self.INNER) else None

    def line(self, frame, event, value):
        if event == "return" and frame.f_code is self.OUTER:
            self.training = False
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                signal.raise_signal(signal.SIGINT)
        return self.line


def test_an_interrupt_at_any_line_is_made_good(tmp_path):
    data = small_dataset(tmp_path / "data", "insert", train=12, held_out=2)
    config = tiny(batch=32, updates=2, adaptive="on")
    with Tapper() as whole:
        train_run(data, config, tmp_path / "whole", **QUIET)
    stopped = 0
    for at in range(1, whole.lines + 1, 2):  # each is a run
        run = tmp_path / f"cut-{at}"
        try:
            with Tapper(at):
                train_run(data, config, run, **QUIET)
        except Interrupted:  # not where the run is finished anyway
            stopped += 1
            train_run(data, config, run, **QUIET, resume=True)
        for name in ("last", "best"):
            assert same(weights(run, name), weights(tmp_path / "whole", name)), at
        assert (run / "best.safetensors").read_bytes() == (tmp_path / "whole" / "best.safetensors").read_bytes()
        assert story(run) == story(tmp_path / "whole")
    assert stopped > whole.lines // 8


def test_one_of_several_ranks_only_ends_when_it_is_interrupted(insert, tmp_path, monkeypatch):
    """To save takes all of them: one alone would wait for the others."""

    def interrupted(loop):
        raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "_validate", interrupted)
    monkeypatch.setattr("trainer.training.fit.Interrupt", lambda active: Interrupt(active=False))
    with pytest.raises(KeyboardInterrupt):
        train_run(insert, tiny(), tmp_path / "run", **QUIET)
    assert not (tmp_path / "run" / "last.safetensors").exists()


def test_a_finished_run_stays_as_it_is(insert, tmp_path):
    train_run(insert, tiny(), tmp_path / "run", **QUIET)
    before = weights(tmp_path / "run")
    assert train_run(insert, tiny(), tmp_path / "run", **QUIET, resume=True).finished == "epochs"
    assert same(before, weights(tmp_path / "run"))


def test_a_folder_with_a_run_is_not_overwritten(insert, datasets, tmp_path):
    train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET)
    with pytest.raises(FolderConflict, match="--resume"):
        train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET)
    with pytest.raises(FolderConflict, match="seed: existing value 0, requested 1"):
        train_run(insert, tiny(epochs=1, seed=1), tmp_path / "run", **QUIET, resume=True)
    with pytest.raises(FolderConflict, match="another dataset"):
        train_run(datasets["edit"], tiny(epochs=1), tmp_path / "run", **QUIET, resume=True)


def test_two_runs_cannot_share_a_folder(insert, tmp_path):
    class Second(Reporter):
        def line(self, text):
            with pytest.raises(FolderConflict, match="in use by another process"):
                train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET, resume=True)

    train_run(insert, tiny(epochs=1), tmp_path / "run", device="cpu", reporter=Second(quiet=True))


def test_the_same_content_is_the_same_bytes(tmp_path):
    tensors = {f"layer.{number}": torch.full((3,), float(number)) for number in range(5)}
    for number in range(20):
        save_checkpoint(tmp_path / str(number), tensors, {"epoch": 1, "updates": 2})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert load_checkpoint(tmp_path / "0")[1] == {"epoch": 1, "updates": 2}
    save_checkpoint(tmp_path / "x", tensors, {"loss": float("inf")})
    assert load_checkpoint(tmp_path / "x")[1] == {"loss": None}  # JSON has no such number


def test_a_flipped_bit_and_somebody_elses_weights_are_told_apart(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_checkpoint(path, {"x": torch.zeros(3)}, {"epoch": 1})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadData, match="altered"):
        load_checkpoint(path)
    save_file({"x": torch.zeros(3)}, path, metadata={"trainer": "{}"})
    with pytest.raises(BadData, match="not a checkpoint of this version"):
        load_checkpoint(path)
    header = b'{"__metadata__": null, "x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(BadData, match="not a checkpoint of this version"):
        load_checkpoint(path)


def test_damaged_checkpoints_are_named(insert, tmp_path):
    train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET)
    last = tmp_path / "run" / "last.safetensors"
    content = last.read_bytes()
    tensors, state = load_checkpoint(last)
    for damage in (content[:-5], content[:4], b"", b"\xff" * 64):
        last.write_bytes(damage)
        with pytest.raises(BadData, match=r"last\.safetensors: not a checkpoint"):
            train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET, resume=True)
    save_checkpoint(last, {**tensors, "weights": torch.zeros(9)}, state)
    with pytest.raises(BadData, match="weights is missing or has another shape"):
        train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET, resume=True)
    save_checkpoint(last, tensors, {**state, "epoch": -1})
    with pytest.raises(BadData, match="field epoch: expected int >= 0"):
        train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET, resume=True)
    other = tmp_path / "run" / "best.safetensors"
    save_checkpoint(other, {"x": torch.zeros(1)}, {})
    with pytest.raises(BadData, match="of another model or dataset"):
        Agent.from_pretrained(tmp_path / "run")


def test_the_run_folder_tells_its_story(insert, tmp_path):
    result = train_run(insert, tiny(validate_every=2), tmp_path / "run", **QUIET)
    names = {path.name.split(".")[0] for path in (tmp_path / "run").iterdir()}
    assert names == {"config", "metrics", "events", "last", "best"}
    described = json.loads((tmp_path / "run" / "config.json").read_text())
    manifest = json.loads((insert / "manifest.json").read_text())
    assert described["data"]["spec"] == manifest["spec"] and described["versions"]["torch"]
    for name, digest in described["data"]["files"].items():
        assert manifest["files"][name]["sha256"] == digest
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert ["validation" in line for line in lines] == [False, True, True]
    assert result.best == max(line["validation"]["equation_accuracy"] for line in lines if "validation" in line) / 100


@pytest.mark.parametrize(("most", "played"), [(1000, 60), (60, 60), (59, 30), (20, 20), (1, 1)])
def test_a_large_validation_split_is_sampled_evenly(tmp_path, most, played):
    pairs = pairs_of("insert", 60)
    data = write_dataset(tmp_path / "data", "insert", {"train": pairs[:20], "validation": pairs})
    train_run(data, tiny(epochs=1, validation_pairs=most), tmp_path / "run", **QUIET)
    (line,) = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["validation"]["pairs"] == played


def test_patience_ends_a_run(insert, tmp_path):
    config = tiny(epochs=50, patience=2, learning_rate=1e-9, validate_every=1)
    result = train_run(insert, config, tmp_path / "run", **QUIET)
    assert result.finished == "patience" and result.epochs == 3 and result.best_epoch == 0


def test_a_loss_that_is_no_number_is_named(insert, tmp_path):
    with pytest.raises(Failed, match="loss is NaN or infinite"):
        train_run(
            insert,
            tiny(learning_rate=10.0, clip=1e9, dropout=0.9, epochs=40, weight_decay=100.0),
            tmp_path / "run",
            **QUIET,
        )


@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about its own code
def test_what_is_compiled_learns_the_same(insert, tmp_path, monkeypatch):
    """All that ``--compile`` does but for the generated code, which :mod:`torch` is trusted with."""
    compiled, usual = [], torch.nn.Module.compile

    def traced(model, **options):
        compiled.append(model)
        usual(model, **options, backend="eager")

    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    config = tiny(model="linear", dropout=0.0, updates=3)
    for name in ("plain", "compiled"):
        train_run(insert, config, tmp_path / name, **QUIET, compiled=name == "compiled")
    plain, traced_weights = weights(tmp_path / "plain"), weights(tmp_path / "compiled")
    assert len(compiled) == 1 and plain.keys() == traced_weights.keys()
    assert all(torch.allclose(plain[name], traced_weights[name], atol=1e-4) for name in plain)


@pytest.mark.faults  # half a minute of a C++ compiler
@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler here")
def test_a_compiled_model_learns_the_same(command, insert, tmp_path):
    options = ["--model", "linear", "--preset", "cpu", "--width", 16, "--layers", 1, "--dropout", 0, "--updates", 3]
    for name, more in (("plain", ()), ("compiled", ("--compile",))):
        command("fit", insert, *options, "--device", "cpu", *more, "--out", tmp_path / name)
    plain, compiled = weights(tmp_path / "plain"), weights(tmp_path / "compiled")
    assert plain.keys() == compiled.keys()
    assert all(torch.allclose(plain[name], compiled[name], atol=1e-4) for name in plain)


def test_bf16_trains(insert, tmp_path):
    train_run(insert, tiny(precision="bf16", epochs=1), tmp_path / "run", **QUIET)
    assert all(torch.isfinite(tensor).all() for tensor in weights(tmp_path / "run").values())


@pytest.mark.parametrize(("here", "elsewhere"), [("fp32", "bf16"), ("bf16", "fp32")])
def test_a_run_of_precision_auto_goes_on_as_it_began(insert, tmp_path, monkeypatch, here, elsewhere):
    monkeypatch.setattr(device.Runtime, "best_precision", here)
    for name, precision in (("auto", "auto"), ("chosen", here)):
        train_run(insert, tiny(precision=precision, epochs=1), tmp_path / name, **QUIET)
    assert json.loads((tmp_path / "auto" / "config.json").read_text())["config"]["precision"] == here
    monkeypatch.setattr(device.Runtime, "best_precision", elsewhere)  # resumed on another machine
    assert train_run(insert, tiny(precision="auto", epochs=1), tmp_path / "auto", **QUIET, resume=True).finished
    assert same(weights(tmp_path / "auto"), weights(tmp_path / "chosen"))


def test_adaptive_weights_follow_the_errors(datasets, tmp_path):
    for design, adapts in (("insert", False), ("edit", True)):
        train_run(datasets[design], tiny(epochs=2), tmp_path / design, **QUIET)
        first, second = map(json.loads, (tmp_path / design / "metrics.jsonl").read_text().splitlines())
        n = len(first["slot_weights"])
        assert first["slot_weights"] == pytest.approx([1 / n] * n)
        errors = [100 - accuracy for accuracy in first["slot_accuracy"]]
        expected = [error / sum(errors) for error in errors] if adapts else [1 / n] * n
        assert second["slot_weights"] == pytest.approx(expected, rel=1e-5)


def test_the_cosine_restarts():
    config = Config(restart=4, learning_rate=2.0)
    assert [learning_rate(config, epoch, 0) for epoch in (0, 2, 4, 6)] == pytest.approx([2, 1, 2, 1])
    once = Config(restart=0, updates=10, learning_rate=2.0)
    assert [learning_rate(once, 0, updates) for updates in (0, 5, 10)] == pytest.approx([2, 1, 0])
    warm = Config(warm_up=4, schedule="constant", learning_rate=2.0)
    assert [learning_rate(warm, 0, updates) for updates in (0, 1, 3, 9)] == [0.5, 1, 2, 2]


def test_an_epoch_of_steps_is_every_unique_step_once(insert):
    dataset = Dataset(insert)
    demonstrations = open_demonstrations(dataset, preset("cpu"))
    steps = demonstrations.steps
    order = EpochOrder(steps, tiny(), 64, 0)
    assert sorted(torch.cat([order[i] for i in range(len(order))]).tolist()) == list(range(len(steps)))
    pairs = EpochOrder(steps, tiny(epoch="pairs"), 64, 0)
    assert len(pairs) == -(-steps.trajectories // 64)
    for index in range(len(pairs)):
        batch = pairs[index].tolist()
        pool = set(steps.pooled(pairs.order[index * 64 : (index + 1) * 64]).tolist())
        assert len(set(batch)) == len(batch) == min(64, len(pool)) and set(batch) <= pool


def test_an_epoch_of_equal_lengths_is_a_fair_shuffle(insert):
    steps = open_demonstrations(Dataset(insert), preset("cpu")).steps
    lengths = steps.lengths[steps.state_of]
    size = 16
    epochs = [EpochOrder(steps, tiny(lengths="equal"), size, epoch) for epoch in range(2)]
    batches = [[order[i] for i in range(len(order))] for order in epochs]
    for order in batches:
        assert sorted(torch.cat(order).tolist()) == list(range(len(steps)))
        equal = [len(lengths[rows].unique()) == 1 for rows in order]
        assert sum(equal) >= sum(count // size for count in lengths.bincount().tolist())
        assert [len(rows) for rows in order].count(size) >= len(order) - 1
        means = [lengths[rows].double().mean() for rows in order]
        assert means != sorted(means)  # short and long batches alternate
    # Which steps are together, and when, differs from epoch to epoch.
    first, second = ({frozenset(rows.tolist()) for rows in order} for order in batches)
    assert not first & second


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_a_batch_without_overlap(insert, world):
    dataset = Dataset(insert)
    demonstrations = open_demonstrations(dataset, preset("cpu"))
    steps = demonstrations.steps
    config = tiny(batch=len(steps) - 1)  # the last batch has one row
    parts = [
        list(MemorySampler(steps, config, Runtime(torch.device("cpu"), rank, world)).updates(0))
        for rank in range(world)
    ]
    whole = list(MemorySampler(steps, config, Runtime(torch.device("cpu"))).updates(0))
    for index, update in enumerate(whole):
        rows = [len(part[index].batch.states) if part[index].share else 0 for part in parts]
        assert sum(rows) == len(update.batch.states)
        total = sum(update.batch.actions.sum(0))
        mine = sum(part[index].batch.actions.sum(0) * (part[index].share > 0) for part in parts)
        assert torch.equal(total, sum(mine))
        means = sum(part[index].share * part[index].batch.actions.double().mean() for part in parts) / world
        assert float(means) == pytest.approx(float(update.batch.actions.double().mean()))


@pytest.mark.parametrize("world", [1, 2])
def test_a_stream_reads_every_row_group_once(tmp_path, world):
    data = Dataset(small_dataset(tmp_path, "edit", shards=3, row_group_size=25))
    demonstrations = open_demonstrations(data, preset("cpu"))
    config = tiny(stream=True, stream_rows=40)
    streams = [
        StreamSampler(
            data, demonstrations.footers, demonstrations.contract, config, Runtime(torch.device("cpu"), rank, world)
        )
        for rank in range(world)
    ]
    orders = [stream.windows(0) for stream in streams]
    assert all(order == orders[0] for order in orders) and orders[0] != streams[0].windows(1)
    flat = [group for window in orders[0] for group in window]
    assert sorted(flat) == sorted(streams[0].groups) and len(orders[0]) > 1
    assert all(len(window) >= world for window in orders[0])
    rows = sum(len(stream._load(window).taken) for stream in streams for window in orders[0])
    assert rows == sum(footer.shard.rows for footer in demonstrations.footers)
    if world == 1:
        whole = demonstrations.steps
        seen = {
            (tuple(state[:length]), tuple(action))
            for update in streams[0].updates(0)
            for state, length, action in zip(
                update.batch.states.tolist(),
                update.batch.lengths.tolist(),
                update.batch.actions.tolist(),
                strict=True,
            )
        }
        assert len(seen) == len(whole)


def test_streaming_to_more_ranks_than_row_groups_is_refused(insert):
    data = Dataset(insert)
    demonstrations = open_demonstrations(data, preset("cpu"))
    with pytest.raises(InvalidConfig, match="requires at least as many row groups"):
        StreamSampler(
            data, demonstrations.footers, demonstrations.contract, tiny(stream=True), Runtime(torch.device("cpu"), 0, 2)
        )


def test_a_model_that_cannot_fit_is_refused_before_memory_is_taken(insert, tmp_path):
    with pytest.raises(InvalidConfig, match="parameters needs .* GB"):
        train_run(insert, preset("paper", width=1 << 14, layers=60), tmp_path / "run", **QUIET)
    assert not (tmp_path / "run" / "config.json").exists()


def test_training_on_the_expert_alone_needs_no_augmented_shards(insert, tmp_path):
    folder = shutil.copytree(insert, tmp_path / "data")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if "augmented" not in name}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadData, match="no augmented/train shards"):
        train_run(folder, tiny(epochs=1), tmp_path / "run", **QUIET)
    train_run(folder, tiny(epochs=1, train_on="expert"), tmp_path / "run", **QUIET)


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A run that was stopped between two checkpoints, in memory and streamed."""
    root = tmp_path_factory.mktemp("cut")
    data = small_dataset(root / "data", "edit", shards=2, row_group_size=60)
    settings = {"memory": {"batch": 16}, "stream": {"batch": 16, "stream": True, "stream_rows": 150}}
    for name, changes in settings.items():
        with pytest.raises(Stop):
            train_run(data, tiny(**changes), root / name, device="cpu", reporter=Stopper(7), save_every=3)
    return lambda name, out: (data, tiny(**settings[name]), shutil.copytree(root / name, out / name))


@pytest.mark.parametrize("kind", ["memory", "stream"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": 10**6}, "a run with these settings cannot reach this position"),
        ({"window": 10**6, "updates": 10**6}, "epoch 0 has no update 6 in window 1000000"),
        ({"index": 10**6, "updates": 10**6}, "epoch 0 has no update 1000000 in window"),
        ({"epoch": 10**6, "updates": 10**6}, "a run with these settings cannot reach this position"),
        ({"best_epoch": 3}, "a run with these settings cannot reach this position"),
        ({"rate": float("nan")}, "field rate: expected float, got null"),
        ({"best": "1"}, "field best: expected float . null, got str"),
        ({"finished": "luck"}, "field finished: invalid enum value 'luck'"),
        ({"world": None}, "field world: expected int, got null"),
    ],
)
def test_a_position_that_the_run_does_not_have_is_named(cut, tmp_path, kind, change, message):
    data, config, run = cut(kind, tmp_path)
    last = run / "last.safetensors"
    tensors, state = load_checkpoint(last)
    if kind == "stream" and "index" in change:
        message = message.replace("window", f"window {state['window']}")
    message = message.replace("update 6", f"update {state['index']}")
    save_checkpoint(last, tensors, state | change)
    with pytest.raises(BadData, match=rf"last\.safetensors: .*{message}"):
        train_run(data, config, run, **QUIET, resume=True)


def test_an_epoch_that_ends_before_it_began_is_named(cut, tmp_path):
    data, config, run = cut("memory", tmp_path)
    tensors, state = load_checkpoint(run / "last.safetensors")
    dataset = Dataset(data)
    demonstrations = open_demonstrations(dataset, config)
    size = len(EpochOrder(demonstrations.steps, config, config.batch, 0))
    tensors["tally"].zero_()
    save_checkpoint(run / "last.safetensors", tensors, state | {"index": size, "updates": size})
    with pytest.raises(BadData, match="ends before its first update"):
        train_run(data, config, run, **QUIET, resume=True)


def first_of(tensors, key):
    return next(name for name in sorted(tensors) if name.startswith("optimizer.") and name.endswith(f".{key}"))


BROKEN = {
    "no mean": ("exp_avg", lambda tensor: None, "has no exp_avg"),
    "no count": ("step", lambda tensor: None, "has no step"),
    "a count of nothing": ("step", lambda tensor: tensor * 0, "does not belong to this optimizer"),
    "a count of whole numbers": ("step", lambda tensor: tensor.long(), "does not belong to this optimizer"),
    "a mean of whole numbers": ("exp_avg_sq", lambda tensor: tensor.int(), "does not belong to this optimizer"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_optimizer_without_all_its_parts_is_named(cut, tmp_path, case):
    data, config, run = cut("memory", tmp_path)
    tensors, state = load_checkpoint(run / "last.safetensors")
    key, change, message = BROKEN[case]
    name = first_of(tensors, key)
    tensors[name] = change(tensors[name])
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_checkpoint(run / "last.safetensors", kept, state)
    with pytest.raises(BadData, match=rf"last\.safetensors: .*{message}"):
        train_run(data, config, run, **QUIET, resume=True)


def test_a_checkpoint_larger_than_its_run_is_not_read(cut, tmp_path):
    data, config, run = cut("memory", tmp_path)
    tensors, state = load_checkpoint(run / "last.safetensors")
    save_checkpoint(run / "last.safetensors", tensors | {"more": torch.zeros(1 << 20)}, state)
    with pytest.raises(BadData, match="expected at most"):
        train_run(data, config, run, **QUIET, resume=True)
    name = next(name for name in tensors if name.startswith("model."))
    save_checkpoint(run / "last.safetensors", tensors | {name: tensors[name].to(torch.complex64)}, state)
    with pytest.raises(BadData, match="expected floating-point weights"):
        train_run(data, config, run, **QUIET, resume=True)


def test_a_stream_goes_on_with_as_many_ranks_as_it_had(cut, tmp_path):
    """In memory a batch is the same for any number of ranks, so there it does not matter."""
    for kind, world in (("memory", 0), ("stream", 1)):
        data, config, run = cut(kind, tmp_path)
        last = run / "last.safetensors"
        tensors, state = load_checkpoint(last)
        assert state["world"] == world
        train_run(data, config, run, **QUIET, resume=True)
    save_checkpoint(last, tensors, state | {"world": 3})
    with pytest.raises(FolderConflict, match=r"divided among 3 ranks, not 1; resume with torchrun --nproc-per-node 3"):
        train_run(data, config, run, **QUIET, resume=True)
    save_checkpoint(last, tensors, state | {"world": 3, "finished": "epochs"})
    assert train_run(data, config, run, **QUIET, resume=True).finished == "epochs"


def test_a_flipped_bit_of_a_description_is_found(insert, tmp_path):
    train_run(insert, tiny(epochs=1), tmp_path / "run", **QUIET)
    path = tmp_path / "run" / "config.json"
    sound, rng, found = path.read_bytes(), random.Random(5), 0
    told = Description.read(path)
    for _ in range(600):
        at = rng.randrange(len(sound))
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << rng.randrange(8)]) + sound[at + 1 :])
        try:
            assert Description.read(path) == told  # a space that became another, or a name that nobody reads
        except TrainerError as error:
            found += "\n" not in str(error)
    assert found > 550
    values = json.loads(sound)
    path.write_text(json.dumps(values | {"parameters": values["parameters"] + 1}))
    with pytest.raises(BadData, match=r"config\.json: altered"):
        Description.read(path)
    path.write_text(json.dumps({name: value for name, value in values.items() if name != "sha256"}))
    with pytest.raises(BadData, match="missing required field sha256"):
        Description.read(path)
    path.write_text(json.dumps(values | {"versions": {"x": "\ud800"}}))
    with pytest.raises(BadData, match="not valid JSON"):
        Description.read(path)
