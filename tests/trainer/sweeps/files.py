"""A small sweep file for tests."""

FILE = """
title = "Small"
out = "{out}"
preset = "cpu"
seeds = [0, 1]

[settings]
width = 16
layers = 1
batch = 64
updates = {updates}

[[data]]
task = "aor"
path = "{data}"
build = "aegen build aor"

[[grid]]
tasks = ["aor"]
models = ["ar", "nar-star"]
ta = [true]
"""


def write_file(path, data, updates=20, **changes):
    text = FILE.format(out=path / "runs", data=data, updates=updates)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (path / "small.toml").write_text(text)
    return path / "small.toml"
