"""The code of the README prints what the README shows, and its claims stand on the pages that they link to."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.?\d+|inf|nan)(?:[eE][-+]?\d+)?(?![\w])")


def examples():
    """Return each Python block with the output block right after it, if there is one."""
    text = README.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```\n(?:\n?^```(?:text)?\n(.*?)^```)?", text, re.MULTILINE | re.DOTALL)
    return [pytest.param(code, shown, id=f"block{k}") for k, (code, shown) in enumerate(found)]


def split(text):
    """Return the words between the numbers, and the numbers."""
    words = " ".join(re.sub(r"[\[\],]", " ", NUMBER.sub(" # ", text)).split())
    return words, [float(number) for number in NUMBER.findall(text)]


def test_it_opens_with_the_sentence_of_the_report():
    pytest.importorskip("jinja2", reason="needs the extra mauc[cli]")
    from mauc.report import judge
    from mauc.report.advice import headline_sentence

    text = " ".join(README.read_text(encoding="utf-8").replace("\n> ", " ").replace("**", "").split())
    of_report = " ".join(headline_sentence(judge([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.9])).split())
    before, after = of_report.removesuffix(" (50 % would be chance).").split("75.0 %")
    assert re.search(f"{re.escape(before)}\\d\\d\\.\\d %{re.escape(after)}", text)


def test_it_fits_two_screens():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 110


def test_there_is_an_example_with_its_output():
    assert any(shown for _, shown in (param.values for param in examples()))


@pytest.mark.parametrize(("code", "shown"), examples())
def test_example(code, shown, monkeypatch, tmp_path):
    if "torch" in code:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {"__name__": "__main__"})
    if shown:
        words, numbers = split(printed.getvalue())
        expected_words, expected_numbers = split(shown)
        assert words == expected_words
        assert numbers == pytest.approx(expected_numbers, rel=1e-6, nan_ok=True)


def test_the_numbers_of_the_claims_stand_on_the_pages_they_link_to():
    text = README.read_text(encoding="utf-8")
    claims = re.findall(r"^\| \[.*?\]\((docs/results/\S+?)\) \| (.*) \|$", text, re.MULTILINE)
    assert len(claims) >= 7
    for page, claim in claims:
        shown = _plain_numbers((README.parent / page).read_text(encoding="utf-8"))
        for number in re.findall(r"(?<![\w-])[-+]?\d+(?:\.\d+)?(?![\w-])", _plain_numbers(claim)):
            found = re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", shown)
            assert found, f"{number} of {claim!r} is not on {page}"


def _plain_numbers(text):
    """Return the text with plain minus signs and without separators between thousands."""
    return re.sub(r"(?<=\d)[,\u202f ](?=\d{3}\b)", "", text.replace("−", "-"))
