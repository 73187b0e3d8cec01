from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegen.core.errors import InvalidSpec
from aegen.pairs.spec import Spec


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    task = draw(st.sampled_from(["aor", "aes", "aec"]))
    l = draw(st.integers(3, 6))
    return Spec(
        task,
        n=draw(st.integers(2, 500)),
        l=l,
        d=draw(st.integers(1, 24)),
        seed=draw(st.integers(0, 2**63 - 1)),
        split=draw(st.sampled_from(["source", "paper"])),
        division=draw(st.booleans()) if task == "aes" else False,
        errors=draw(st.integers(0, 2 * l - 2)) if task == "aec" else 3,
        variants=draw(st.integers(0, 5)) if task != "aor" else 0,
        rows_per_shard=draw(st.integers(1, 10**6)),
    )


@given(specs())
def test_parse_is_the_inverse_of_id(spec):
    assert Spec.parse(spec.id) == spec


@given(specs(), specs())
def test_ids_tell_specs_apart(a, b):
    assert (a.id == b.id) == (a == b)


def test_scales():
    assert Spec.parse("aes-n100-l5-d10k").d == 10_000
    assert Spec.parse("aes-n100-l5-d2m").d == 2_000_000


@pytest.mark.parametrize(
    "settings,names",
    [
        ({"n": 1}, "n=1"),
        ({"l": 2}, "l=2"),
        ({"d": 0}, "d=0"),
        ({"task": "xyz"}, "xyz"),
        ({"split": "other"}, "split=other"),
        ({"seed": -1}, "seed=-1"),
        ({"division": True}, "division"),
        ({"errors": 2}, "errors"),
        ({"variants": 2}, "variants"),
        ({"rows_per_shard": 0}, "rows_per_shard=0"),
        ({"n": 10**5}, "63 bits"),
        ({"n": 10**8, "l": 3}, "expected int <= 1000000"),
        ({"l": 10**8}, "63 bits"),
        ({"task": "aes", "variants": 10**12}, "variants=1000000000000"),
        ({"d": True}, "d=True"),
        ({"task": "aec", "errors": 9}, "errors=9"),
    ],
)
def test_bad_settings_are_named(settings, names):
    with pytest.raises(InvalidSpec, match=names):
        Spec(**({"task": "aor", "n": 10, "l": 5, "d": 100} | settings))


@pytest.mark.parametrize("text", ["", "aor", "aor-n10-l5", "aor-n10-l5-d10-x", "aor-n10-n11-l5-d10", "aor-n10-l5-dten"])
def test_unreadable_ids(text):
    with pytest.raises(InvalidSpec):
        Spec.parse(text)


@pytest.mark.parametrize(
    "d,sizes", [(10_000, (7000, 1500, 1500)), (1, (1, 0, 0)), (10, (8, 1, 1)), (101, (71, 15, 15))]
)
def test_quotas(d, sizes):
    assert tuple(Spec("aor", 10, 5, d).quotas.values()) == sizes
