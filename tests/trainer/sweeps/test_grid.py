"""Sweep files: which cells they describe, and what is wrong in them."""

import tomllib
from pathlib import Path

import pytest
import yaml

from tests.trainer.sweeps.files import write_file
from trainer.core.errors import TrainerError
from trainer.models.zoo import MODELS
from trainer.report import paper
from trainer.report.collect import read_results
from trainer.sweeps.grid import read_sweep
from trainer.sweeps.runner import run_sweep
from trainer.training.presets import preset

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "cards" / "sweeps").glob("*.toml"))


def test_a_grid_is_every_combination_one_seed_after_the_other(insert, tmp_path):
    sweep = read_sweep(write_file(tmp_path, insert))
    assert [cell.name for cell in sweep.cells] == [
        "aor/ar+ta/seed-0", "aor/nar-star+ta/seed-0", "aor/ar+ta/seed-1", "aor/nar-star+ta/seed-1",
    ]  # fmt: skip
    assert sweep.cells[3].config.seed == 1 and sweep.cells[3].config.width == 16
    assert [cell.seed for cell in read_sweep(write_file(tmp_path, insert), seeds=(7,)).cells] == [7, 7]
    assert read_sweep(write_file(tmp_path, insert), preset_name="paper").cells[0].preset == "paper"


def test_some_cells_can_be_chosen_by_their_names(insert, tmp_path):
    sweep = read_sweep(write_file(tmp_path, insert))
    assert sweep.only(()).cells == sweep.cells
    assert [cell.name for cell in sweep.only(("/ar+ta/seed-1", "nar")).cells] == [
        "aor/nar-star+ta/seed-0", "aor/ar+ta/seed-1", "aor/nar-star+ta/seed-1",
    ]  # fmt: skip
    with pytest.raises(TrainerError, match="no cell has 'planner' in its name; --plan lists them"):
        sweep.only(("nar", "planner"))


def test_a_label_keeps_cells_apart_that_differ_in_settings_alone(insert, tmp_path):
    more = '[[grid]]\ntasks = ["aor"]\nmodels = ["planner"]\nta = [true]\nseeds = [0]\npreset = "fast"\n'
    labelled = 'label = "greedy slots"\nsettings = {{ beam = 1, confidence = false }}\n'
    file = write_file(tmp_path, insert, **{'title = "Small"': 'split = "validation"'})
    file.write_text(file.read_text() + more + more + labelled.replace("{{", "{").replace("}}", "}"))
    plain, greedy = read_sweep(file).cells[-4:-2]
    assert [plain.name, greedy.name] == ["aor/planner+ta/seed-0", "aor/planner+ta,greedy-slots/seed-0"]
    assert (plain.config.beam, greedy.config.beam, greedy.preset, greedy.split) == (8, 1, "fast", "validation")
    assert (
        greedy.commands(tmp_path)[1].endswith("--split validation")
        and "--no-confidence" in greedy.commands(tmp_path)[0]
    )
    for wrong, message in (
        ('label = "a/b"', "label: expected str matching"),
        ('split = "test"', "unknown field split"),
    ):
        file.write_text(file.read_text().replace('label = "greedy slots"', wrong))
        with pytest.raises(TrainerError, match=message):
            read_sweep(file)
        file.write_text(file.read_text().replace(wrong, 'label = "greedy slots"'))
    with pytest.raises(TrainerError, match="field split: invalid enum value 'train'"):
        read_sweep(write_file(tmp_path, insert, **{'title = "Small"': 'split = "train"'}))


def test_variants_are_cells_of_their_own(insert, tmp_path):
    file = write_file(tmp_path, insert, **{"ta = [true]": "ta = [false]\nvariants = true"})
    cell = read_sweep(file).cells[0]
    assert (cell.name, cell.label, cell.config.train_on) == ("aor/ar,variants/seed-0", "variants", "variants")
    assert "--train-on variants" in cell.commands(tmp_path)[0]
    practised = file.read_text().partition("[[grid]]")[2] + 'label = "practised"\n[grid.practise]\nrounds = 1\n'
    file.write_text(f"{file.read_text()}\n[[grid]]{practised}")
    assert read_sweep(file).cells[2].start == cell  # that was trained on variants, too


def test_sizes_of_a_task_are_kept_apart(insert, tmp_path):
    data = '[[data]]\ntask = "aor"\npath = "x"\nsize = "n20"\n\n[[grid]]\ntasks = ["aor"]\n'
    both = data + 'sizes = ["n10", "n20"]\nlabel = "small"\n'
    named = {'build = "aegen build aor"': 'size = "n10"', '[[grid]]\ntasks = ["aor"]\n': both}
    file = write_file(tmp_path, insert, **named)
    text = file.read_text()
    cells = read_sweep(file, seeds=(0,)).cells
    assert [(cell.name, cell.label, cell.dataset.path) for cell in cells[::2]] == [
        ("aor/ar+ta,n10-small/seed-0", "n10 small", str(insert)), ("aor/ar+ta,n20-small/seed-0", "n20 small", "x"),
    ]  # fmt: skip
    file.write_text(text.replace('"n20"]', '"n30"]'))
    with pytest.raises(TrainerError, match="for aor, n30"):
        read_sweep(file)


def test_the_command_of_a_cell_is_the_cell(insert, tmp_path):
    from trainer.cli import main

    cell = read_sweep(write_file(tmp_path, insert)).cells[1]
    fit, evaluate = cell.commands(tmp_path / "runs")
    arguments = fit.split()[1:]
    parsed = main.commands["fit"].make_context("fit", arguments[1:]).params
    for name, value in cell.config.to_json().items():
        assert parsed[name] in (None, value), name
    chosen = {name: value for name, value in parsed.items() if value is not None and name in cell.config.to_json()}
    assert preset(parsed["preset_name"], **chosen) == cell.config
    assert evaluate == f"trainer evaluate {tmp_path / 'runs' / cell.name}"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda path: path.stem)
def test_the_projects_sweeps_name_the_commands_of_their_data(file):
    sweep = read_sweep(file)
    assert sweep.cells and all(cell.dataset.build.startswith("aegen ") for cell in sweep.cells)
    assert {cell.dataset.path for cell in sweep.cells} == {
        cell.dataset.build.split("--out ")[1].split()[0] for cell in sweep.cells
    }


def test_the_projects_sweeps_cover_the_papers_tables():
    cells = [cell for file in SHIPPED for cell in read_sweep(file).cells]
    usual = {(c.dataset.task, c.model, c.ta) for c in cells if (c.dataset.metric, c.dataset.design) in
             {("levenshtein", "insert"), ("span", "span"), ("levenshtein", "edit")}}  # fmt: skip
    for model, ta in [*paper.MAIN, *paper.DECODERS]:
        assert all((task, model, ta) in usual for task in paper.TASKS), (model, ta)
    shown = {(c.dataset.design, c.model, c.ta) for c in cells if c.dataset.task == "aes" and c.dataset.metric == "span"}
    assert set(paper.DESIGNS) <= shown
    assert set(paper.METRICS) <= {(c.dataset.metric, c.model) for c in cells if c.dataset.task == "aes" and not c.ta}
    assert {("lcs", False), ("lcs", True)} <= {(c.dataset.metric, c.ta) for c in cells if c.dataset.task == "aec"}
    assert {cell.model for cell in cells} == set(MODELS)


def test_a_cell_of_several_sweeps_is_the_same_in_all():
    seen = {}
    for sweep in map(read_sweep, SHIPPED):
        for cell in sweep.cells:
            assert seen.setdefault((sweep.out, cell.name), cell) == cell


def test_the_results_of_the_papers_tables_are_of_the_sweeps_as_they_are():
    cells = {cell.name: cell for file in SHIPPED for cell in read_sweep(file).cells if cell.preset == "core-hours"}
    results = read_results(ROOT / "cards" / "results" / "main" / "results.json").cells
    for record in results:
        asked = cells[record.name].config.to_json()
        assert {name: asked[name] for name in record.settings} == record.settings, record.name
        assert record.commands == cells[record.name].commands(Path("runs/paper"))


WRONG = [
    ({'title = "Small"': "title = ["}, "not valid TOML"),
    ({'title = "Small"': 'titel = "Small"'}, "unknown field titel"),
    ({'models = ["ar", "nar-star"]': 'models = ["gpt"]'}, "unknown model 'gpt'"),
    ({'models = ["ar", "nar-star"]': 'models = ["ar", "ar"]'}, "duplicate cell: aor/ar+ta/seed-0"),
    ({'tasks = ["aor"]': 'tasks = ["aes"]'}, "no [[data]] for aes"),
    ({"ta = [true]": "ta = true"}, "field grid[0].ta: expected array, got bool"),
    ({"ta = [true]": "ta = []"}, "field grid[0].ta: expected array of length >= 1"),
    ({"seeds = [0, 1]": "seeds = [-1]"}, "field seeds[0]: expected int >= 0"),
    ({"width = 16": "width = [16]"}, "field settings[...]: expected bool | int | float | str, got array"),
    ({"width = 16": "name = 16"}, "unknown setting 'name'"),
    ({"width = 16": "width = 15"}, "a multiple of 2"),
    ({"width = 16": "seed = 1"}, "seed is an axis"),
    ({'preset = "cpu"': 'preset = "tpu"'}, "unknown preset 'tpu'"),
    ({'task = "aor"': 'task = "../../escaped"'}, "field data[0].task: expected str matching"),
    ({"ta = [true]": "ta = [true]\nvariants = true"}, "variants: they are not augmented"),
    ({'models = ["ar", "nar-star"]': 'models = ["tagging"]'}, "tagging cannot be augmented: set ta = [false]"),
]


@pytest.mark.parametrize("changes,message", WRONG)
def test_what_is_wrong_in_a_file_is_named(insert, tmp_path, changes, message):
    with pytest.raises(TrainerError) as caught:
        read_sweep(write_file(tmp_path, insert, **changes))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert "small.toml" in str(caught.value)


def as_yaml(file):
    """The same sweep as YAML."""
    values = tomllib.loads(file.read_text())
    file.with_suffix(".yaml").write_text(yaml.safe_dump(values))
    return file.with_suffix(".yaml")


def test_yaml_says_the_same(insert, tmp_path):
    file = write_file(tmp_path, insert)
    assert read_sweep(as_yaml(file)) == read_sweep(file)
    for text, message in (("a: [", "not valid YAML"), ("- 1", "expected a mapping, got list"), ("1: 2", "expected str"),
                          ("!!python/object/apply:os.getcwd []", "not valid YAML")):  # fmt: skip
        (tmp_path / "x.yml").write_text(text)
        with pytest.raises(TrainerError, match=message) as caught:
            read_sweep(tmp_path / "x.yml")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes,message", WRONG[1:])
def test_what_is_wrong_in_yaml_is_named_too(insert, tmp_path, changes, message):
    with pytest.raises(TrainerError) as caught:
        read_sweep(as_yaml(write_file(tmp_path, insert, **changes)))
    assert message in str(caught.value) and "small.yaml" in str(caught.value)


def test_a_cell_has_the_settings_that_its_model_reads(insert, tmp_path):
    """The rest would only be in the way of its command, which refuses what changes nothing."""
    models = {'models = ["ar", "nar-star"]': 'models = ["ar", "planner"]', "batch = 64": "batch = 64\nbeam = 2"}
    ar, planner = read_sweep(write_file(tmp_path, insert, **models), seeds=(0,)).cells
    assert ar.settings == {"width": 16, "layers": 1, "batch": 64, "updates": 20}
    assert planner.settings == {"beam": 2, "updates": 20}
    nobody = {"ta = [true]": "ta = [true]\nsettings = { beam = 1 }"}
    with pytest.raises(TrainerError, match=r"grid\[0\]: settings: beam: ar, nar-star do not read it"):
        read_sweep(write_file(tmp_path, insert, **nobody))


def test_a_datasets_settings_come_between_the_files_and_the_grids(insert, tmp_path):
    own = {'aegen build aor"': 'aegen build aor"\nsettings = { width = 32, batch = 32, beam = 2 }'}
    grid = {"ta = [true]": "ta = [true]\nsettings = { batch = 16 }"}
    cell = read_sweep(write_file(tmp_path, insert, **own, **grid), seeds=(0,)).cells[0]
    assert cell.settings == {"width": 32, "layers": 1, "batch": 16, "updates": 20}
    taken = {'aegen build aor"': 'aegen build aor"\nsettings = { seed = 1 }'}
    with pytest.raises(TrainerError, match=r"settings: seed is an axis of the grid"):
        read_sweep(write_file(tmp_path, insert, **taken))


def test_a_hub_id_without_its_scheme_is_explained(insert, tmp_path):
    file = write_file(tmp_path, "org/name", **{'build = "aegen build aor"': ""})
    (missing,) = read_sweep(file).missing()
    with pytest.raises(TrainerError, match="org/name: no finished dataset; if it is on the hub, write hf://org/name"):
        run_sweep(read_sweep(file))
    assert missing.is_local and not read_sweep(write_file(tmp_path, "hf://org/name")).missing()
