"""Cards: every number is the shards', and rendering changes nothing that it does not own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from aegen.card.companions import CARD, COMPANIONS
from aegen.card.header import Terms
from aegen.card.render import write_card
from aegen.core.errors import BadData, FolderConflict, InvalidSpec
from aegen.dataset.commands import commands
from aegen.dataset.folder import Folder
from aegen.dataset.verify import verify
from aegen.engines.local import Local
from aegen.pairs.importing import Import
from aegen.pairs.spec import Spec
from aegen.pipeline import build as pipeline
from tests.pages import ATTACK, check_inert, code_blocks, code_spans, head_and_body

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HUB_DISABLE_TELEMETRY": "1"}
TEXTS = "wrong,right\nteh,the\nhte,the\nrecieve,receive\nadress,address\nfine,fine\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One dataset of each kind, in folders that have the names on their cards."""
    place = tmp_path_factory.mktemp("cards")
    for spec in (Spec("aor", 10, 4, 800, split="paper"), Spec("aes", 10, 4, 120), Spec("aec", 10, 4, 120, variants=2)):
        pipeline.build(spec, Folder(place / spec.id), Local())
    (place / "words.csv").write_text(TEXTS)
    wanted = Import(
        (place / "words.csv",), tokens="chars", ratio="100/0/0", source_column="wrong", target_column="right"
    )
    words = Folder(place / "words")
    pipeline.import_pairs(wanted, words)
    pipeline.add_demonstrations(words, pipeline.demonstrator("text", "lcs"), Local())
    return place


NAMES = ["aor-n10-l4-d800-s0-paper", "aes-n10-l4-d120-s0", "aec-n10-l4-d120-s0-v2", "words"]
kinds = pytest.mark.parametrize("name", NAMES)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def header(folder):
    return yaml.safe_load((folder / CARD).read_text().split("---\n")[1])


def python(code, cwd, **settings):
    environment = os.environ | OFFLINE | {"HF_HOME": str(cwd / "hf")} | settings
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "dataset card" not in done.stderr  # datasets complains there of what it cannot use
    return done.stdout


@kinds
def test_the_header_says_what_the_shards_say(place, name):
    found = header(place / name)
    assert [config.get("default", False) for config in found["configs"]].count(True) == 1
    there = sorted(path.name for path in (place / name).iterdir() if path.is_dir())
    assert sorted(config["config_name"] for config in found["configs"]) == there
    for config, info in zip(found["configs"], found["dataset_info"], strict=True):
        for files, counted in zip(config["data_files"], info["splits"], strict=True):
            paths = list((place / name).glob(files["path"]))
            assert paths and files["split"] == counted["name"]
            assert counted["num_examples"] == sum(pq.read_metadata(path).num_rows for path in paths)
            schema = pq.read_schema(paths[0])
            assert schema.names == [feature["name"] for feature in info["features"]]


@kinds
def test_the_page_says_what_the_shards_say(place, name):
    page = (place / name / CARD).read_text()
    pairs = pq.read_table(place / name / "pairs" / "train-00000-of-00001.parquet").to_pylist()
    unchanged = sum(row["source"] == row["target"] for row in pairs)
    assert f"| pairs | {len(pairs):,} |" in page and f" {unchanged:,} in train (" in page
    steps = pq.read_table(place / name / "expert" / "train-00000-of-00001.parquet")
    assert f"| expert: steps | {len(steps):,} |" in page
    assert "arxiv.org/abs/2210.12276" in page and "{{" not in page and "{%" not in page


def test_overlap_is_counted(place):
    folder = place / NAMES[0]
    sources = {
        split: set(pq.read_table(folder / "pairs" / f"{split}-00000-of-00001.parquet")["source"].to_pylist())
        for split in ("train", "test")
    }
    shared = len(sources["train"] & sources["test"])
    assert shared and f"{shared:,} (train/test)" in (folder / CARD).read_text()
    assert "No two splits share a source" in (place / NAMES[1] / CARD).read_text()


@kinds
def test_the_card_is_a_function_of_the_shards(place, name, tmp_path):
    copy = shutil.copytree(place / name, tmp_path / "elsewhere")
    for companion in COMPANIONS:
        (copy / companion).unlink(missing_ok=True)
    (copy / CARD).write_text("<!-- Rendered by `aegen card` long ago -->")
    folder = Folder(copy)
    write_card(folder, folder.manifest())
    assert files(copy) == files(place / name)
    verify(folder, Local())
    path = copy / "pairs" / "train-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadData, match="altered"):
        verify(folder, Local())


@kinds
def test_the_commands_on_the_card_make_the_same_bytes(place, name, run, tmp_path):
    (tmp_path / "words.csv").write_text(TEXTS)
    for command in commands(Folder(place / name).manifest().recipe):
        assert command in (place / name / CARD).read_text()
        run(*shlex.split(command)[1:])
    assert files(tmp_path / name) == files(place / name)


@kinds
def test_the_code_on_the_card_runs(place, name):
    page = (place / name / CARD).read_text()
    for code in re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        python(code, place)


@kinds
def test_every_config_and_split_loads(place, name):
    code = f"""
import json
from datasets import get_dataset_config_names, load_dataset
found = {{}}
for config in get_dataset_config_names({name!r}):
    for split, rows in load_dataset({name!r}, config).items():
        found[f"{{config}}/{{split}}"] = [len(rows), {{k: str(v) for k, v in rows.features.items()}}]
        assert len(rows) == sum(1 for _ in load_dataset({name!r}, config, split=split, streaming=True))
default = load_dataset({name!r})
found["default"] = sorted(default["train"].column_names)
print(json.dumps(found))
"""
    found = json.loads(python(code, place).splitlines()[-1])
    assert found.pop("default") == ["action", "origin", "pair", "state", "step"]
    manifest = Folder(place / name).manifest()
    wanted = {shard.split("-")[0]: info.rows for shard, info in manifest.files.items() if info.rows}
    assert {where: rows for where, (rows, _) in found.items()} == wanted
    assert found["expert/train"][1]["action"] == "List(Value('string'))"
    assert found["expert/train"][1]["step"] == "Value('int16')"


def test_without_the_extra_there_are_no_pictures(place, tmp_path):
    copy = shutil.copytree(place / NAMES[2], tmp_path / "d")
    assert (copy / "edit-kinds.png").is_file()
    code = "import sys; sys.modules['matplotlib'] = None; sys.stderr = sys.stdout; from aegen.cli import main"
    said = python(f"{code}; main(['card', 'd'])", tmp_path)
    assert not list(copy.glob("*.png")) and said.endswith(
        'need matplotlib: in a clone of aegen, pip install ".[report]"\n'
    )
    assert ".png" not in (copy / CARD).read_text() and "pip install" not in (copy / CARD).read_text()


def test_somebody_elses_page_is_not_overwritten(tmp_path):
    (tmp_path / CARD).write_text("# Mine")
    with pytest.raises(FolderConflict, match="README.md: not rendered by aegen"):
        pipeline.generate(Spec("aor", 10, 4, 20), Folder(tmp_path), Local())
    assert files(tmp_path) == {CARD: b"# Mine"}


def test_what_the_owner_stated_stays(place, run, tmp_path):
    shutil.copytree(place / "words", tmp_path / "words")
    assert header(tmp_path / "words")["license"] == "unknown" and header(tmp_path / "words")["language"] == ["und"]
    run("card", "words", "--license", "cc-by-4.0", "--language", "en")
    run("augment", "words")
    found = header(tmp_path / "words")
    assert (found["license"], found["language"]) == ("cc-by-4.0", ["en"])
    assert "augmented" in [config["config_name"] for config in found["configs"]]
    with pytest.raises(InvalidSpec, match="license="):
        Terms().stated('mit"\nconfigs: []', None)


@pytest.mark.parametrize("options", [("--license", "cc-by-4.0"), ("--language", "en")])
def test_the_terms_of_generated_data_are_ours(place, invoke, tmp_path, options):
    folder = shutil.copytree(place / NAMES[1], tmp_path / "d")
    said = invoke("card", "d", *options, check=2).stderr
    assert said == "Error: --license and --language are for imported texts; generated data is MIT\n"
    assert files(folder) == files(place / NAMES[1])


def test_pairs_alone_have_a_card(run, tmp_path):
    run("generate", "aor", "--n", 10, "--l", 4, "--d", 20, "--out", "d")
    assert header(tmp_path / "d")["configs"][0]["default"] is True
    assert "aegen trajectories" in (tmp_path / "d" / CARD).read_text()


@kinds
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning:rdflib")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index:DeprecationWarning:mlcroissant")
def test_croissant_is_accepted_and_read(place, name):
    import mlcroissant

    dataset = mlcroissant.Dataset(jsonld=str(place / name / "croissant.json"))
    rows = pq.read_table(place / name / "expert" / "train-00000-of-00001.parquet").to_pylist()
    found = [row for row in dataset.records("expert") if row["expert/split"] == b"train"]
    assert [row["expert/state"].decode() for row in found] == [row["state"] for row in rows]


def test_the_command_of_croissant_accepts_it(place):
    command = [Path(sys.executable).parent / "mlcroissant", "validate", "--jsonld"]
    done = subprocess.run([*command, place / NAMES[0] / "croissant.json"], capture_output=True, text=True)
    assert done.returncode == 0 and "Done." in done.stderr, done.stderr
    broken = json.loads((place / NAMES[0] / "croissant.json").read_text())
    del broken["recordSet"][0]["field"][1]["dataType"]
    (place / "broken.json").write_text(json.dumps(broken))
    assert subprocess.run([*command, place / "broken.json"], capture_output=True).returncode != 0


@pytest.mark.parametrize(
    "part,change",
    [
        ("pairs", {"task": "../../README"}), ("pairs", {"task": 3}), ("pairs", {"seed": None}),
        ("pairs", {"inputs": [1]}), ("pairs", {"inputs": [{"name": "x"}]}), ("expert", {"backend": 3}),
    ],
)  # fmt: skip
def test_a_manifest_that_lies_gets_no_card(place, tmp_path, part, change):
    shutil.copytree(place / "words", tmp_path / "words")
    path = tmp_path / "words" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["spec"][part] |= change
    path.write_text(json.dumps(manifest))
    before = files(tmp_path)
    with pytest.raises(BadData):
        write_card(Folder(tmp_path / "words"), Folder(tmp_path / "words").manifest())
    assert files(tmp_path) == before


def test_a_card_tells_of_tags(invoke, tmp_path):
    """Also where there is nothing else but pairs."""
    (tmp_path / "a.csv").write_text("source,target\nteh,the\nhte,the\n")
    invoke("import", "a.csv", "--tokens", "chars", "--ratio", "100/0/0", "--out", "d")
    assert "contains only pairs" in (tmp_path / "d" / CARD).read_text()
    invoke("trajectories", "d", "--design", "tags")
    page = (tmp_path / "d" / CARD).read_text()
    assert "only pairs" not in page and "INSERT_h" in page and "trainer fit" not in page
    assert "| tags: trajectories | 2 | 0 | 0 |" in page and "| tags: steps | 4 | 0 | 0 |" in page
    assert "| action tokens (n) | 4 |" in page and "`tags`: one row is one step" in page
    assert "| list of string | one tag for the beginning of the text and one for each token of the state;" in page
    assert f"rapidfuzz {version('rapidfuzz')}" in page
    invoke("trajectories", "d")
    page = (tmp_path / "d" / CARD).read_text()
    assert "`expert` and `tags`: one row is one step" in page and "trainer fit" in page
    assert "operation, position, token; all `DONE` at the end; of `tags` one tag for the beginning" in page
    check_inert(page, headings=8)


def test_variants_are_counted_too(place):
    page = (place / "aec-n10-l4-d120-s0-v2" / CARD).read_text()
    assert "| variants_expert: trajectories | 168 | 0 | 0 |" in page
    assert "`expert`, `variants_expert` and `augmented`: one row" in page


def test_the_commands_on_a_card_name_a_custom_metric(invoke, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from aegen import Splice\n\ndef metric(state, goal):\n"
        "    return [Splice(i, i + 1, (b,)) for i, (a, b) in enumerate(zip(state, goal)) if a != b]\n"
    )
    (tmp_path / "a.csv").write_text("source,target\nab,ba\nabc,cba\n")
    invoke("import", "a.csv", "--tokens", "chars", "--out", "d")
    invoke("trajectories", "d", "--metric", "mine:metric")
    invoke("augment", "d", "--metric", "mine:metric", "--max-edits", 3)
    page = (tmp_path / "d" / CARD).read_text()
    lines = re.findall(r"^aegen .*", page.partition("## Reproduce")[2], flags=re.MULTILINE)[:3]
    assert [line.split()[1] for line in lines] == ["import", "trajectories", "augment"]
    for line in lines:
        invoke(*shlex.split(line)[1:])
    assert files(tmp_path / "a") == files(tmp_path / "d")


def test_a_dataset_of_the_hub_is_named_with_its_owner(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"source": ["a b"], "target": ["a c"]})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: data)
    folder = Folder(tmp_path / "d")
    pipeline.import_pairs(Import((Path("org/words:en"),)), folder)
    page = (tmp_path / "d" / CARD).read_text()
    assert "aegen import org/words:en --kind datasets --out words-en" in page
    assert f"- `org/words:en`, fingerprint `{data._fingerprint}`" in page


def test_texts_of_strangers_are_shown_and_nothing_more(tmp_path):
    """Rows and the name of their file hold Markdown, HTML and YAML; the page has the same parts as any other."""
    name = "@we`ird``|<b>---.jsonl"
    text = "``` |\n````\n# Owned\n---\n<img onerror=x>"
    lines = [json.dumps({"source": f"{text} {number}", "target": f"{text} x"}) for number in range(3)]
    (tmp_path / name).write_text("\n".join(lines))
    folder = Folder(tmp_path / "d")
    pipeline.import_pairs(Import((tmp_path / name,), ratio="100/0/0"), folder)
    pipeline.add_demonstrations(folder, pipeline.demonstrator("text"), Local())
    page = (tmp_path / "d" / CARD).read_text()
    assert head_and_body(page)[0]["license"] == "unknown"
    text = check_inert(page, headings=8)
    assert "Owned" not in text and "onerror" not in text
    blocks, rest = code_blocks(head_and_body(page)[1])
    assert any("onerror" in block for block in blocks) and any(name in block for block in blocks)
    assert name in [span.strip() for span in code_spans(rest)[0]]
    write_card(folder, folder.manifest())  # a card like this one is still recognised as ours
    assert (tmp_path / "d" / CARD).read_text() == page


def test_what_a_manifest_says_is_shown_and_nothing_more(place, tmp_path):
    shutil.copytree(place / "words", tmp_path / "words")
    usual = check_inert((tmp_path / "words" / CARD).read_text(), headings=8)
    path = tmp_path / "words" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["spec"]["expert"]["backend"] = {ATTACK: ATTACK}
    manifest["spec"]["pairs"]["inputs"] = [{"name": f"words.csv{ATTACK}", "sha256": ATTACK}]
    path.write_text(json.dumps(manifest))
    write_card(Folder(tmp_path / "words"), Folder(tmp_path / "words").manifest())
    text = check_inert((tmp_path / "words" / CARD).read_text(), headings=8)
    assert len(text.splitlines()) == len(usual.splitlines())


@pytest.mark.parametrize("licence,language", [("on", "no"), ("1.0", "null"), ("0x1f", "y")])
def test_terms_that_yaml_has_another_meaning_for_stay_texts(place, run, tmp_path, licence, language):
    shutil.copytree(place / "words", tmp_path / "words")
    run("card", "words", "--license", licence, "--language", language)
    assert header(tmp_path / "words")["license"] == licence and header(tmp_path / "words")["language"] == [language]
    folder = Folder(tmp_path / "words")
    assert Terms.of(folder, folder.manifest()) == Terms(licence, language)


@pytest.mark.parametrize("head", ['license: "@x"', "license: [mit]", "license: |\n  mit\n  x", "language: en", "{"])
def test_terms_on_a_strangers_card_are_checked(place, tmp_path, head):
    shutil.copytree(place / "words", tmp_path / "words")
    (tmp_path / "words" / CARD).write_text(f"---\n{head}\n---\n<!-- Rendered by `aegen card` -->\n")
    folder = Folder(tmp_path / "words")
    assert Terms.of(folder, folder.manifest()) == Terms()
