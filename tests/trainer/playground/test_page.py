"""The playground as a person meets it, in a browser."""

import json

import pytest

from tests.browser import Browser, find_browser
from tests.trainer.playground.conftest import PAIRS

TEXT, TARGET = PAIRS[1]
STATE = "document.querySelector('#game .state')"


@pytest.fixture(scope="module")
def page(server):
    program = find_browser()
    if not program:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or AEGEN_BROWSER=/path/to/one)")
    with Browser(program) as browser:
        browser.open(server.address)
        browser.wait_for("document.querySelectorAll('#list button').length")
        yield browser


def text_of(page, selector):
    return page.ask(f"document.querySelector({json.dumps(selector)}).textContent")


def click(page, selector):
    assert page.ask(f"document.querySelector({json.dumps(selector)}).disabled") is False
    page.ask(f"document.querySelector({json.dumps(selector)}).click()")


def marked(page):
    """The state that is shown, as it was and as it becomes."""
    parts = page.ask(f"[...{STATE}.childNodes].map(node => [node.nodeName.toLowerCase(), node.textContent])")
    before = "".join(text for kind, text in parts if kind in ("#text", "del"))
    after = "".join(text for kind, text in parts if kind in ("#text", "ins"))
    return " ".join(before.split()), " ".join(after.split())


def edit(page, text):
    """Type a text, press Enter, wait for the game."""
    page.write("#text", text)
    page.press("Enter", 13)
    page.wait_for("document.querySelector('#status').textContent === '' && !document.querySelector('#edit').disabled")


def test_typing_stepping_and_going_back(page):
    edit(page, TEXT)
    assert page.ask("document.getElementById('game').hidden") is False
    assert text_of(page, ".where") == "step 0 of 3" and page.ask("document.querySelector('.back').disabled") is True
    middle = "5 - ( 4 - 3 ) = 4"
    assert marked(page) == (TEXT, middle) and text_of(page, "#game .state del") == "( 2 + 3 )"
    chips = page.ask("[...document.querySelectorAll('#game .action .chip')].map(chip => chip.textContent)")
    assert [chip.split()[0] for chip in chips] == ["POS_0", "POS_4", "5"] and all(chip.endswith(" %") for chip in chips)
    assert text_of(page, "#game .verdict") == "applied" and text_of(page, "#game .equation") == "holds"
    seen = []
    for _ in range(3):
        click(page, ".forward")
        seen.append(marked(page)[0])
    assert seen == [middle, TARGET, TARGET] and text_of(page, "#game .action") == "returned"
    assert page.ask("document.querySelector('.forward').disabled") is True
    click(page, ".back")
    assert text_of(page, ".where") == "step 2 of 3" and text_of(page, "#game .verdict") == "done"
    page.ask("document.getElementById('game').focus()")
    page.press("ArrowLeft", 37)
    assert marked(page) == (middle, TARGET)
    page.ask("document.querySelectorAll('#game .moves li')[0].click()")
    assert text_of(page, ".where") == "step 0 of 3"


def test_the_game_plays_by_itself(page):
    edit(page, TEXT)
    click(page, ".run")
    page.wait_for("document.querySelector('.where').textContent === 'step 3 of 3'")
    page.wait_for("document.querySelector('.run').textContent === '▶'")


def test_a_bad_text_is_explained_and_the_game_stays(page):
    edit(page, TEXT)
    edit(page, "61+6-(81-73)=59")
    assert 'write one space between tokens: "61 + 6 - ( 81 - 73 ) = 59"' in text_of(page, "#problem")
    assert page.ask("document.getElementById('problem').hidden") is False and marked(page)[0] == TEXT
    edit(page, TEXT)
    assert page.ask("document.getElementById('problem').hidden") is True


def test_an_example_is_one_click_away_and_undo_returns(page):
    edit(page, PAIRS[2][0])
    click(page, ".forward")
    page.ask("document.querySelector('#list button').click()")
    page.wait_for("document.querySelector('#game .target')?.textContent === '61 + 6 - 8 = 59'")
    assert (
        text_of(page, "#game .judged") == "right" and page.ask("document.querySelector('#text').value") == PAIRS[0][0]
    )
    click(page, "#undo")
    assert text_of(page, ".where") == "step 1 of 2" and page.ask("document.querySelector('#text').value") == PAIRS[2][0]


def test_a_step_is_a_text_to_go_on_from(page):
    edit(page, TEXT)
    click(page, ".forward")
    click(page, "#here")
    assert page.ask("document.querySelector('#text').value") == "5 - ( 4 - 3 ) = 4"
    click(page, "#edit")
    page.wait_for("document.querySelector('.where').textContent === 'step 0 of 2'")


def shown(page, game):
    """The stepper with a game of our own, as HTML."""
    make = f"const box = document.createElement('div'); new Stepper(box).show({json.dumps(game)});"
    return page.ask(f"(() => {{ {make} return box.innerHTML; }})()")


def test_a_refusal_is_shown_and_strange_texts_are_only_text(page):
    attack = "<img src=x onerror=\"document.title='owned'\">"
    move = {"state": [attack], "action": [attack, "POS_9"], "verdict": "out-of-range", "probabilities": [0.2, 1]}
    html = shown(page, {"tokens": "words", "moves": [move], "result": [attack], "target": attack, "right": False})
    assert "refused: out of range" in html and "chip unsure" in html and "<img" not in html
    assert page.ask("document.title") == "planner on aes"


@pytest.mark.parametrize(("removed", "written"), [([5], []), ([0], [7]), ([], [0])])
def test_marks_that_do_not_fit_are_left_out(page, removed, written):
    move = {"state": ["1", "2"], "action": ["x"], "verdict": "applied", "removed": removed, "written": written}
    html = shown(page, {"tokens": "words", "moves": [move], "result": ["3"]})
    assert "<del>" not in html and "<ins>" not in html and "1 2" in html


def test_nothing_is_asked_of_anybody_else(page, server):
    asked = page.ask("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert asked and all(name.startswith((server.address, "data:")) for name in asked)
    broken = "document.addEventListener('securitypolicyviolation', (event) => tell(event.violatedDirective))"
    sent = f"fetch('http://127.0.0.1:{server.port + 1}/').then(() => tell('sent'), () => {{}})"
    tried = f"new Promise((tell) => {{ {broken}; {sent}; }})"
    answer = page.call("Runtime.evaluate", expression=tried, awaitPromise=True, returnByValue=True)
    assert answer["result"]["value"] == "connect-src"


def test_it_fits_a_phone(page):
    edit(page, TEXT)
    page.look(400)
    assert page.ask("document.documentElement.scrollWidth") <= 400
    page.look(1280)
