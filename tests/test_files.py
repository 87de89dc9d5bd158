import pytest

from sobolev._files import write_atomic


def test_writes_text_and_bytes_and_leaves_nothing_else(tmp_path):
    path = write_atomic(tmp_path / "a" / "b.txt", "η")
    assert path.read_text(encoding="utf-8") == "η"
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["b.txt"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = write_atomic(tmp_path / "x", "old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
