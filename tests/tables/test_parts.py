"""Free memory, and the order of files."""

import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

from mauc._tables.parts import available_memory

GIB = 2**30


@pytest.mark.parametrize(
    ("machine", "limit", "expected"),
    [
        ("MemAvailable: 4194304 kB", None, 4),
        ("MemAvailable: 4194304 kB", "max", 4),
        ("MemFree: 1 kB", str(3 * GIB), 2.5),
    ],
)
def test_free_memory_counts_pages_of_files_that_the_system_can_drop(tmp_path, machine, limit, expected):
    (tmp_path / "meminfo").write_text(f"MemTotal: 9999999 kB\n{machine}\n")
    if limit:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(str(2 * GIB))
        stat = f"anon {GIB // 2}\nfile {3 * GIB // 2}\ninactive_file {GIB}\nactive_file {GIB // 2}\n"
        (tmp_path / "memory.stat").write_text(stat)
    assert available_memory(tmp_path / "meminfo", tmp_path) == expected * GIB
