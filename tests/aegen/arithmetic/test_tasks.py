"""The distribution of what is generated, against a plain reading of the definition (tests/oracle.py)."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from Levenshtein import editops

from aegen.arithmetic import aec, aes
from aegen.arithmetic.equation import value
from aegen.arithmetic.tasks import Aec, Aes, Aor
from aegen.core.format import SPLITS
from aegen.core.randomness import Draws
from aegen.engines.local import Local
from aegen.pairs.generate import batches, plan, scan, task_of
from aegen.pairs.spec import Spec
from tests import oracle
from tests.aegen.statistics import same_distribution

D = 12_000


def holds(tokens: list[str]) -> bool:
    """Whether these are a true equation, ``expression = expression``."""
    middle = tokens.index("=")
    left, right = value(tokens[:middle]), value(tokens[middle + 1 :])
    return left is not None and left == right


def made(spec: Spec) -> list[tuple[list[str], list[str]]]:
    layout = plan(spec, Local())
    table = pa.Table.from_batches([batch for split in SPLITS for batch in batches(spec, layout, "pairs", split)])
    return [(s.split(), t.split()) for s, t in zip(*(table[c].to_pylist() for c in ("source", "target")), strict=True)]


@pytest.fixture(scope="module", params=["aor-n10", "aes-n100", "aec-n10"])
def samples(request):
    task, n = request.param.split("-n")
    fast = made(Spec(task, int(n), 5, D, seed=1))
    slow = [(s.split(), t.split()) for s, t in oracle.pairs(task, int(n), 5, 4000, seed=2)]
    return task, fast, slow


def features(target):
    signed = target[0] == "-"
    body = target[1:] if signed else target
    return signed, body


STATISTICS = {
    "signs": lambda s, t: [t[0] == "-"],
    "operators in order": lambda s, t: [tuple(features(t)[1][1:-2:2])],
    "integers": lambda s, t: [int(token) for token in features(t)[1][0::2]],
    "first integer": lambda s, t: [t[: 1 + (t[0] == "-")][-1]],
    "right-hand side": lambda s, t: [t[-1]],
    "parentheses": lambda s, t: [s.count("(")],
    "which integers": lambda s, t: [tuple(token == "(" for token in s if token in ("(", "="))],
    "operators inside": lambda s, t: [s[i + 2 + (s[i + 1] == "-")] for i, token in enumerate(s) if token == "("],
    "negative inside": lambda s, t: [s[i + 1] == "-" for i, token in enumerate(s) if token == "("],
    "first operand inside": lambda s, t: [s[i + 1 + (s[i + 1] == "-")] for i, token in enumerate(s) if token == "("],
    "length of the source": lambda s, t: [len(s) - len(t)],
    "unchanged": lambda s, t: [s == t],
    "kinds of edits": lambda s, t: [tag for tag, _, _ in editops(s, t)],
    "number of edits": lambda s, t: [len(editops(s, t))],
    "places of edits": lambda s, t: [j for _, _, j in editops(s, t)],
    "tokens of the source": lambda s, t: s,
}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_distribution(samples, statistic):
    _, fast, slow = samples
    count = STATISTICS[statistic]
    left, right = ([key for pair in pairs for key in count(*pair)] for pairs in (fast, slow))
    assert same_distribution(left, right)


def test_the_test_can_fail(samples):
    """The same statistics tell apart what differs: the last operator weighted differently."""
    _, fast, slow = samples
    biased = [pair for i, pair in enumerate(fast) if features(pair[1])[1][5] != "+" or i % 3]
    keys = [[STATISTICS["operators in order"](*pair)[0] for pair in pairs] for pairs in (biased, slow)]
    assert not same_distribution(*keys)


def test_every_row_is_what_it_should_be(samples):
    task, fast, _ = samples
    assert len({tuple(target) for _, target in fast}) == D
    for source, target in fast:
        assert holds(target) and features(target)[1][-2] == "="
        if task == "aor":
            assert source == oracle.aor_source(target)
        if task == "aes":
            assert holds(source) and "/" not in STATISTICS["operators inside"](source, target)
        if task == "aec":
            assert len(editops(source, target)) <= 3 and source[-1] == target[-1]


@pytest.mark.parametrize("n", [2, 3, 4, 10, 31])
@pytest.mark.parametrize("division", [False, True])
def test_expressions_are_all_there_once(n, division):
    task = Aes(n, division)
    wanted = oracle.expressions(n, division)
    for v in range(2, n + 2):
        ways = int(task.ends[-1][v])
        first, operators, second = task.expression(np.full(ways, v), np.arange(ways))
        made = [
            ["(", *(["-"] if a < 0 else []), str(abs(a)), "+-*/"[o], str(b), ")"]
            for a, o, b in zip(first.tolist(), operators.tolist(), second.tolist(), strict=True)
        ]
        assert sorted(made) == sorted(wanted.get(v, []))


def test_the_table_of_expressions_changes_nothing(monkeypatch):
    cells = np.array([[-1, 20, 0, 31, 4, 44]] * 50)
    draws = Draws(3, np.arange(50))
    tabled = Aes(50).sources(cells, draws)
    monkeypatch.setattr(aes, "EXPRESSIONS", 0)
    plain = Aes(50).sources(cells, draws)
    assert plain.numbers.shape != tabled.numbers.shape
    assert plain.texts().to_pylist() == tabled.texts().to_pylist()


def test_the_table_of_insertions_changes_nothing(monkeypatch):
    cells = np.array([[-1, 12, 0, 8, 4, 13], [1, 12, 3, 8, 4, 13]] * 50, dtype=np.int16)
    draws = Draws(3, np.arange(100))
    tabled = Aec(10).sources(cells, draws)
    monkeypatch.setattr(aec, "PAIRS", 0)
    plain = Aec(10).sources(cells, draws)
    assert plain.numbers.shape != tabled.numbers.shape
    assert plain.texts().to_pylist() == tabled.texts().to_pylist()
    assert (plain.hashes(7) == tabled.hashes(7)).all()


@pytest.mark.parametrize("task,n", [("aes", 20), ("aec", 10)])
def test_long_lists_of_subsets_are_not_needed(task, n, monkeypatch):
    """Places picked one by one have the distribution of those that come from a list."""
    spec = Spec(task, n, 5, D)
    short = made(spec)
    for module in (aec, aes):
        monkeypatch.setattr(module, "subsets", lambda most, size: None)
    aec._places.cache_clear(), aes._subsets.cache_clear(), scan.cache_clear()
    try:
        long = made(spec)
    finally:
        aec._places.cache_clear(), aes._subsets.cache_clear(), scan.cache_clear()
    assert short != long
    for statistic in ("parentheses", "which integers", "number of edits", "places of edits", "length of the source"):
        count = STATISTICS[statistic]
        assert same_distribution(*([key for pair in pairs for key in count(*pair)] for pairs in (short, long)))


def test_values_without_an_expression_stay():
    cells = np.array([[-1, 7, 0, 8, 4, 7]] * 20)  # integers 2 and 3 for N = 2: no expression has these values
    assert set(Aes(2).sources(cells, Draws(1, np.arange(20))).texts().to_pylist()) == {"2 + 3 = 2"}


def test_division_is_an_option():
    spec = Spec("aes", 20, 4, 3000, division=True)
    inside = Counter(key for s, t in made(spec) for key in STATISTICS["operators inside"](s, t))
    assert inside["/"] > 0
    assert all(value(s[s.index("(") : s.index(")") + 1]) is not None for s, _ in made(spec) if "(" in s)


@pytest.mark.parametrize("errors", [0, 1, 6])
def test_number_of_errors_is_an_option(errors):
    pairs = made(Spec("aec", 10, 5, 2000, errors=errors))
    assert max(len(editops(s, t)) for s, t in pairs) <= errors
    assert (errors == 0) == all(s == t for s, t in pairs)
    rng = random.Random(3)
    slow = [(oracle.aec_source(t, 10, errors, rng), t) for _, t in pairs]
    lengths = [[len(s) - len(t) for s, t in sample] for sample in (pairs, slow)]
    assert same_distribution(*lengths)


def test_variants_that_would_leak_are_drawn_again():
    """In a small space the same sources come again and again."""
    spec = Spec("aec", 3, 4, 100, variants=20, errors=2)
    layout = plan(spec, Local())
    sources = [
        {source for batch in batches(spec, layout, config, split) for source in batch.column("source").to_pylist()}
        for config, split in (("variants", "train"), ("pairs", "validation"), ("pairs", "test"))
    ]
    assert not sources[0] & (sources[1] | sources[2])


@pytest.mark.parametrize("task", ["aes", "aec"])
def test_variants_are_more_sources_of_training_targets(task):
    spec = Spec(task, 10, 5, 2000, variants=3)
    layout = plan(spec, Local())
    table = pa.Table.from_batches(batches(spec, layout, "variants", "train"))
    pairs = pa.Table.from_batches(batches(spec, layout, "pairs", "train"))
    assert table["id"].to_pylist() == [i for i in pairs["id"].to_pylist() for _ in range(3)]
    assert table["target"].to_pylist() == [t for t in pairs["target"].to_pylist() for _ in range(3)]
    others = {
        source
        for split in ("validation", "test")
        for batch in batches(spec, layout, "pairs", split)
        for source in batch.column("source").to_pylist()
    }
    assert others.isdisjoint(table["source"].to_pylist())
    changed = [s for s, t in zip(*(table[c].to_pylist() for c in ("source", "target")), strict=True) if s != t]
    assert len(set(changed)) > 0.9 * len(changed)


def test_each_task_is_its_own_class():
    kinds = {name: type(task_of(Spec(name, 10, 5, 10))) for name in ("aor", "aes", "aec")}
    assert kinds == {"aor": Aor, "aes": Aes, "aec": Aec}
