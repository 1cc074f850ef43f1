"""Take pictures of the report, the terminal and these pages: ``make screenshots``.

It needs Chromium and the built pages (``make docs``), and writes report.png, terminal.png and docs.png into
``docs/_static``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.text import Text
from sklearn.datasets import load_wine

HERE = Path(__file__).parent
COLUMNS = 100
COMMAND = "mauc fit wines.csv --target kind --out model.skops"
PAGE = """<body style="margin: 0; background: #12171a"><pre style="margin: 0; padding: 18px 22px; width: max-content;
color: #e9ecea; font: 15px/1.3 'DejaVu Sans Mono', monospace">{code}</pre></body>"""


def run(command: str, folder: Path) -> str:
    """Return what the command prints in a terminal of :data:`COLUMNS` columns, with colours and without progress."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    call = [sys.executable, "-c", "from mauc._cli import main; main()", *command.split()[1:]]
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def write_wines(folder: Path) -> None:
    """Write a table of 59, 71 and 10 wines with four columns."""
    wine = load_wine()
    head = ",".join([*wine.feature_names[5:9], "kind"])
    kinds = ("Barolo", "Grignolino", "Barbera")
    rows = [",".join([*map(str, x), kinds[k]]) for x, k in zip(wine.data[:140, 5:9], wine.target[:140], strict=True)]
    (folder / "wines.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def shoot(browser: Browser, url: str, name: str, width: int, height: int | None) -> None:
    """Take a picture of the top of a page, or of all of it."""
    page = browser.new_page(viewport={"width": width, "height": height or 100}, color_scheme="light")
    page.goto(url)
    page.wait_for_timeout(300)
    target = HERE / "_static" / name
    page.screenshot(path=target, full_page=height is None)
    page.close()
    print(f"{target}: {target.stat().st_size / 1000:.0f} kB")


def main() -> None:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise SystemExit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        run("mauc demo --out report.html", folder)
        write_wines(folder)
        console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
        console.print(f"[bold]$ {COMMAND}[/bold]")
        console.print(Text.from_ansi(run(COMMAND, folder)))
        terminal = folder / "terminal.html"
        terminal.write_text(PAGE.format(code=console.export_html(inline_styles=True, code_format="{code}")), "utf-8")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        shoot(browser, (folder / "report.html").as_uri(), "report.png", 1180, 1190)
        shoot(browser, terminal.as_uri(), "terminal.png", 940, None)
        landing = HERE / "_build" / "html" / "index.html"
        if landing.is_file():
            shoot(browser, landing.as_uri(), "docs.png", 1280, 900)
        browser.close()


if __name__ == "__main__":
    main()
