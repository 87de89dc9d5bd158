"""Files of real data: folders that are named, and downloads from a server on this machine."""

import hashlib
import http.server
import os
import threading
from pathlib import Path

import pytest

from sobolev.datasets import _remote
from sobolev.datasets._remote import RemoteFile, cache_folder, fetch

CONTENT = b"P1\t-\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.pages.get(self.path)
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Length", str(len(content or b"") + self.server.missing))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.asked, found.pages, found.missing = [], {"/a.txt": CONTENT}, 0
    found.address = f"http://127.0.0.1:{found.server_port}"
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("SOBOLEV_DATA_HOME", raising=False)
    monkeypatch.setattr(_remote, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def all_files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_download_is_kept_and_made_once(server, cache):
    file = RemoteFile("hiv/a.txt", f"{server.address}/a.txt", SHA256)
    assert fetch(file) == fetch(file) == cache / "hiv" / "a.txt"
    assert fetch(file).read_bytes() == CONTENT
    assert server.asked == ["/a.txt"]
    assert all_files(cache) == [cache / "hiv" / "a.txt"]


def test_a_damaged_copy_is_fetched_again(server, cache):
    file = RemoteFile("a.txt", f"{server.address}/a.txt", SHA256)
    fetch(file).write_bytes(CONTENT[:-1])
    assert fetch(file).read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_wrong_checksum_leaves_nothing(server, cache):
    file = RemoteFile("hiv/a.txt", f"{server.address}/a.txt", "0" * 64)
    with pytest.raises(ValueError, match=r"hiv/a\.txt") as error:
        fetch(file)
    assert SHA256 in str(error.value)
    assert all_files(cache) == []


def test_a_wrong_download_keeps_the_old_file(server, cache):
    file = RemoteFile("a.txt", f"{server.address}/a.txt", "0" * 64)
    cache.mkdir()
    (cache / "a.txt").write_bytes(b"old")
    with pytest.raises(ValueError, match=r"a\.txt"):
        fetch(file)
    assert (cache / "a.txt").read_bytes() == b"old"


def test_a_download_cut_short_is_an_error(server, cache):
    server.missing = 7
    with pytest.raises(OSError, match="could not download"):
        fetch(RemoteFile("a.txt", f"{server.address}/a.txt"))
    assert all_files(cache) == []


@pytest.mark.parametrize("offline", [True, False])
def test_no_answer_names_address_folder_and_variable(server, cache, offline, monkeypatch):
    def refuse(url, timeout):
        raise OSError("no network")

    if offline:
        monkeypatch.setattr("urllib.request.urlopen", refuse)
    file = RemoteFile("hiv/b.txt", f"{server.address}/b.txt", SHA256)
    with pytest.raises(OSError, match="could not download") as error:
        fetch(file)
    for part in (file.url, str(cache), "hiv/b.txt", "SOBOLEV_DATA_HOME"):
        assert part in str(error.value)


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_named_folder_is_read_and_never_downloaded_into(
    server, tmp_path, monkeypatch, by_variable
):
    if by_variable:
        monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path))
    home = None if by_variable else str(tmp_path)
    file = RemoteFile("hiv/a.txt", f"{server.address}/a.txt", SHA256)
    with pytest.raises(FileNotFoundError, match="SOBOLEV_DATA_HOME") as error:
        fetch(file, home)
    assert str(tmp_path) in str(error.value)
    assert file.url in str(error.value)
    (tmp_path / "hiv").mkdir()
    (tmp_path / "hiv" / "a.txt").write_bytes(b"mine")
    assert fetch(file, home).read_bytes() == b"mine"
    assert server.asked == []


def test_the_argument_goes_before_the_variable(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").touch()
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path / "one"))
    assert fetch(RemoteFile("a.txt"), tmp_path / "two") == tmp_path / "two" / "a.txt"
    assert fetch(RemoteFile("a.txt")) == tmp_path / "one" / "a.txt"


def test_an_empty_variable_names_no_folder(server, cache, monkeypatch):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", "")
    assert fetch(RemoteFile("a.txt", f"{server.address}/a.txt")) == cache / "a.txt"


def test_a_file_without_address_asks_for_a_folder():
    with pytest.raises(FileNotFoundError, match=r"no public address.*SOBOLEV_DATA_HOME"):
        fetch(RemoteFile("a.txt"))


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "{set}/sobolev"),
        ("linux", None, "{home}/.cache/sobolev"),
        ("darwin", None, "{home}/Library/Caches/sobolev"),
        ("win32", "LOCALAPPDATA", "{set}/sobolev"),
        ("win32", None, "{home}/AppData/Local/sobolev"),
    ],
)
def test_the_cache_is_where_the_platform_wants_it(
    tmp_path, monkeypatch, platform, variable, expected
):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "set"))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "home")
    monkeypatch.setattr("sys.platform", platform)
    home, chosen = tmp_path / "home", tmp_path / "set"
    assert os.fspath(cache_folder()) == expected.format(home=home, set=chosen)
    assert isinstance(cache_folder(), Path)
