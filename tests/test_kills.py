"""A short campaign of kills; ``make kills`` is the long one."""

import os

import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
if not hasattr(os, "killpg"):
    pytest.skip("needs signals", allow_module_level=True)

from kills import COMMANDS, OLD, Command, Fault, campaign, check_outputs


@pytest.mark.slow
def test_each_command_survives_two_kills():
    assert len(list(campaign(2 * len(COMMANDS), seed=0))) == 2 * len(COMMANDS)


def test_the_campaign_sees_what_is_half_written_or_lost(tmp_path):
    command = Command((), ("in.csv",), ("out.csv", "page.html"))
    good, folder = tmp_path / "good", tmp_path / "folder"
    for place in (good, folder):
        place.mkdir()
        for name in ("in.csv", "out.csv", "page.html"):
            (place / name).write_text(f"all of {name}")
    assert check_outputs(command, folder, good, complete=True) == 2
    (folder / "out.csv").write_bytes(OLD)
    (folder / ".part-mauc-0123456789abcdef").write_text("all")
    assert check_outputs(command, folder, good, complete=False) == 1
    with pytest.raises(Fault, match=r"out\.csv was lost"):
        check_outputs(command, folder, good, complete=True)
    (folder / "out.csv").write_text("all of")
    with pytest.raises(Fault, match=r"out\.csv is half-written"):
        check_outputs(command, folder, good, complete=False)
    (folder / "more.csv").write_text("all of more.csv")
    with pytest.raises(Fault, match=r"more\.csv should not be there"):
        check_outputs(command, folder, good, complete=False)
