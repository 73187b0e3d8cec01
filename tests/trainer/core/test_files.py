"""Files are whole or not there, and a large one is refused before it is decoded."""

import pytest

from trainer.core.errors import BadData, Failed, one_line
from trainer.core.files import digest, read, write, write_json
from trainer.core.records import decode


def test_what_was_written_is_read(tmp_path):
    write_json(tmp_path / "a.json", {"text": "é"})
    assert decode(read(tmp_path / "a.json"), dict[str, str], "a") == {"text": "é"}
    write(tmp_path / "b.json", (tmp_path / "a.json").read_bytes())
    assert digest(tmp_path / "a.json") == digest(tmp_path / "b.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]  # nothing is left aside


def test_what_cannot_be_written_leaves_what_was_there(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(Failed, match="folder: cannot write: "):
        write(tmp_path / "folder", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "large").write_bytes(b" " * 100)
    with pytest.raises(BadData, match="large: 11 bytes of JSON; at most 10 are read"):
        decode(read(tmp_path / "large", most=10), dict[str, str], tmp_path / "large", 10)
    with pytest.raises(BadData, match="none: missing"):
        read(tmp_path / "none")
    with pytest.raises(BadData, match="no such run"):
        read(tmp_path / "none", missing="no such run")
    with pytest.raises(BadData, match="Is a directory"):
        read(tmp_path)


def test_an_error_of_others_is_one_short_line_without_secrets():
    said = one_line(OSError("no\n  https://me:word@host/x?key=word " + "x" * 500))
    assert said.startswith("no https://…@host/x?… x") and "word" not in said and len(said) == 200
