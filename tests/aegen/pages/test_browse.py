"""A dataset as a page: what is marked is what the actions change, and no text becomes markup."""

import json
from html.parser import HTMLParser

import pytest

from aegen.pages.browse import STARTS
from tests.browser import Browser, find_browser
from tests.pages import ATTACK

STRANGE = ["</script><script>document.title='owned'</script>", "<img src=x onerror=alert(1)>", "\x1b[31m\u202e\u2028",
           "a\tb", '"&amp;\'', "𝔘 ﷽ é", "POS_3 DONE", "  "]  # fmt: skip


class Scripts(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.scripts, self.inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag == "script"

    def handle_data(self, data):
        if self.inside:
            self.scripts.append(data)
            self.inside = False


def pairs_of(path):
    return json.loads(Scripts(path.read_text()).scripts[0])


def without(tokens, places):
    assert set(places) <= set(range(len(tokens)))
    return [token for place, token in enumerate(tokens) if place not in places]


@pytest.mark.parametrize("task", ["aor", "aes", "aec"])
@pytest.mark.parametrize("config", ["augmented", "tags"])
def test_the_marks_are_all_that_a_step_changes(invoke, tmp_path, task, config):
    invoke("build", task, "--n", 10, "--l", 4, "--d", 40, "--out", "d")
    if config == "tags":
        invoke("trajectories", "d", "--design", "tags")
    said = invoke("show", "d", "--html", "d.html", "--config", config, "--rows", 20).stdout
    assert said == f"the first 20 of 28 pairs of {config} -> d.html\n"
    games = [game for pair in pairs_of(tmp_path / "d.html") for game in pair["games"]]
    assert any(game["origin"] for game in games) == (config == "augmented")
    edits = 0
    for game in games:
        assert game["moves"][-1]["verdict"] == "done" and game["moves"][-1]["state"] == game["result"]
        for move, after in zip(game["moves"], game["moves"][1:], strict=False):
            edits += 1
            assert move["verdict"] == "applied" and (move["removed"] or move["written"])
            assert without(move["state"], move["removed"]) == without(after["state"], move["written"])
    assert edits > 10


def test_the_page_says_how_many_of_how_many_it_shows(invoke, tmp_path):
    invoke("build", "aor", "--n", 10, "--l", 4, "--d", 40, "--out", "d")
    for options, said in (
        ((), "all 28 pairs of augmented"),
        (("--rows", 3, "--config", "pairs", "--split", "test"), "the first 3 of 6 pairs"),
    ):
        assert invoke("show", "d", "--html", "d.html", *options).stdout == f"{said} -> d.html\n"
        assert (
            f'<p class="soft">Here: {said}, {"test" if options else "train"} split' in (tmp_path / "d.html").read_text()
        )
    invoke("show", "d", "--html", "d.html")
    starts = {}
    for line in invoke("show", "d", "--json", "--rows", 9999).stdout.splitlines():
        starts[json.loads(line)["pair"]] = starts.get(json.loads(line)["pair"], 0) + 1
    pairs = pairs_of(tmp_path / "d.html")
    assert {pair["id"]: pair["starts"] for pair in pairs} == starts
    assert all(len(pair["games"]) == min(pair["starts"], STARTS) for pair in pairs)
    assert max(starts.values()) > STARTS


def imported(invoke, tmp_path, tokens="words"):
    """A dataset of texts that try everything, in both places."""
    texts = [*STRANGE, ATTACK.replace("\n", " ")]
    lines = [{"source": f"{number} {text}", "target": f"{number} x {text}"} for number, text in enumerate(texts)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    invoke("import", "d.jsonl", "--tokens", tokens, "--ratio", "100/0/0", "--out", "d")
    invoke("trajectories", "d")
    return lines


@pytest.mark.parametrize("tokens", ["words", "chars"])
def test_texts_with_any_characters_add_no_markup(invoke, tmp_path, tokens):
    lines = imported(invoke, tmp_path, tokens)
    invoke("show", "d", "--html", "d.html")
    invoke("build", "aor", "--n", 10, "--l", 4, "--d", 40, "--out", "aor")
    invoke("show", "aor", "--html", "aor.html", "--config", "expert")
    strange, usual = (Scripts((tmp_path / name).read_text()) for name in ("d.html", "aor.html"))
    trimmed = [[tag for tag in page.tags if tag not in ("th", "td")] for page in (strange, usual)]
    assert trimmed[0] == trimmed[1] and "<" not in strange.scripts[0]
    shown = {pair["texts"][0] for pair in json.loads(strange.scripts[0])}
    printable = {line["source"] for line in lines if line["source"].isprintable()}
    assert len(shown) == len(lines) and printable <= shown
    assert all(text.isprintable() for text in shown)


def test_pairs_alone_are_listed(invoke, tmp_path):
    imported(invoke, tmp_path)
    invoke("show", "d", "--html", "d.html", "--config", "pairs", "--rows", 3)
    assert [len(pair["texts"]) for pair in pairs_of(tmp_path / "d.html")] == [2, 2, 2]


def test_wrong_use_gets_one_line_and_writes_nothing(invoke, tmp_path):
    invoke("build", "aor", "--n", 10, "--l", 4, "--d", 40, "--out", "d")
    (tmp_path / "there").mkdir()
    for options, message in (
        (("--html", "x.html", "--json"), "choose one"),
        (("--html", "there"), "there"),
        (("--html", "x.html", "--config", "tags"), "no config tags"),
    ):
        done = invoke("show", "d", *options, check=2)
        assert message in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.html").exists() and {path.name for path in tmp_path.iterdir()} == {"d", "there"}


def test_a_person_finds_a_pair_and_steps_through_it(invoke, tmp_path):
    program = find_browser()
    if not program:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or AEGEN_BROWSER=/path/to/one)")
    lines = imported(invoke, tmp_path)
    invoke("show", "d", "--html", "d.html")
    with Browser(program) as page:
        page.open(tmp_path / "d.html")
        assert page.ask("document.title") == "d" and page.ask("document.images.length") == 0
        assert page.ask("document.querySelectorAll('#pairs li').length") == len(lines)
        page.write("#filter", "onerror")
        found = page.ask("[...document.querySelectorAll('#pairs .text')].map(text => text.textContent)")
        assert lines[1]["source"] in found and lines[1]["target"] in found and lines[0]["source"] not in found
        page.ask("document.querySelector('#pairs button').click()")
        assert page.ask("document.querySelector('#stepper ins').textContent") == "x"
        page.ask("document.querySelector('#stepper .forward').click()")
        assert page.ask("document.querySelector('#stepper .state').textContent") == found[1]
        page.look(400)
        assert page.ask("document.documentElement.scrollWidth") <= 400
        assert page.ask("performance.getEntriesByType('resource').length") == 0
