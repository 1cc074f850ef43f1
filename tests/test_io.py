"""Output files: complete or not at all, as private as before, and nothing left of those who were killed."""

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mauc import _io
from mauc._io import first_missing, is_at_root, write_whole


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_a_new_file_gets_the_umask_and_a_replaced_one_keeps_its_mode(tmp_path, umask):
    path = tmp_path / "scores.csv"
    write_whole(path, "new")
    assert mode(path) == 0o600
    for kept in (0o640, 0o400, 0o666):
        path.chmod(kept)
        write_whole(path, f"{kept}")
        assert (mode(path), path.read_text()) == (kept, f"{kept}")


def test_a_name_that_is_not_utf8_is_written_in_escapes(tmp_path):
    write_whole(tmp_path / "r.html", os.fsdecode(b"table na\xefve.csv ") + "漢")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == "table na\\udcefve.csv 漢"


def test_what_replaces_a_private_file_is_private_from_its_first_byte(tmp_path, monkeypatch):
    path, seen = tmp_path / "scores.csv", []
    write_whole(path, "old")
    path.chmod(0o600)
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (seen.append(stat.S_IMODE(os.fstat(handle).st_mode)), fsync(handle))
    )
    write_whole(path, "new")
    assert seen == [0o600]


def test_owner_and_group_are_kept_and_a_foreign_group_gets_nothing_more(tmp_path, monkeypatch):
    path, asked = tmp_path / "scores.csv", []
    path.write_text("old")
    path.chmod(0o640)
    monkeypatch.setattr(os, "fchown", lambda handle, owner, group: asked.append((owner, group)))
    write_whole(path, "new")
    old = path.stat()
    assert asked == [(old.st_uid, -1), (-1, old.st_gid)]
    assert mode(path) == 0o640

    def refused(*_):
        raise PermissionError(errno.EPERM, "not the owner")

    monkeypatch.setattr(os, "fchown", refused)
    write_whole(path, "newer")
    assert (mode(path), path.read_text()) == (0o600, "newer")


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed(tmp_path, exists):
    (tmp_path / "far").mkdir()
    link, target = tmp_path / "link.csv", tmp_path / "far" / "target.csv"
    link.symlink_to("far/target.csv")
    if exists:
        target.write_text("old")
        target.chmod(0o640)
    write_whole(link, "new")
    assert os.readlink(link) == "far/target.csv"
    assert target.read_text() == "new"
    assert not exists or mode(target) == 0o640
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["far", "link.csv", "target.csv"]


def test_no_folder_is_made_at_the_root(tmp_path, monkeypatch):
    made = Path("/no-such-folder-of-mauc/deeper/scores.csv")
    (tmp_path / "link").symlink_to(made)
    for path in (made, tmp_path / "link"):
        assert is_at_root(path)
        with pytest.raises(FileNotFoundError) as caught:
            write_whole(path, "text")
        assert caught.value.filename == str(path)
    assert not Path("/no-such-folder-of-mauc").exists()
    assert not is_at_root(tmp_path / "a" / "b.csv")
    assert first_missing(tmp_path / "a" / "b") == tmp_path / "a"
    monkeypatch.chdir("/")
    assert not is_at_root(Path("mauc-report/index.html")), "a relative name is no mistyped root"


def leftover(folder, age):
    path = folder / f".part-mauc-{os.urandom(8).hex()}"
    path.write_text("half of")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_old_leftovers_are_swept_and_young_ones_are_spared(tmp_path):
    dead, alive = leftover(tmp_path, 2 * _io.SURELY_DEAD), leftover(tmp_path, 0.5 * _io.SURELY_DEAD)
    foreign = [tmp_path / name for name in (".part-abcdefgh", ".part-mauc-notes", "scores.csv.part")]
    for path in foreign:
        path.write_text("of another program")
        os.utime(path, (0, 0))
    link = tmp_path / f".part-mauc-{'0' * 16}"
    link.symlink_to(foreign[0])
    os.utime(link, (0, 0), follow_symlinks=False)
    write_whole(tmp_path / "scores.csv", "text")
    assert not dead.exists()
    assert all(path.exists() for path in (alive, *foreign, link))


STUCK = """
import os, sys, time
from pathlib import Path
from mauc._io import write_whole

def stuck(source, final):
    print(source, flush=True)
    time.sleep(600)

os.replace = stuck
write_whole(Path(sys.argv[1]), "new")
"""


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "scores.csv"
    write_whole(path, "old")
    process = subprocess.Popen([sys.executable, "-c", STUCK, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        temporary = Path(process.stdout.readline().strip())
        write_whole(tmp_path / "other.csv", "text")
        assert temporary.read_text() == "new"
    finally:
        process.kill()
        process.communicate()
    assert temporary.exists()
    assert path.read_text() == "old"
    os.utime(temporary, (0, 0))
    write_whole(tmp_path / "other.csv", "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.csv", "scores.csv"]


def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path, monkeypatch):
    path = tmp_path / "scores.csv"
    write_whole(path, "old")

    def full(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="Disk quota exceeded") as caught:
        write_whole(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]
