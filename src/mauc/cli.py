"""The command ``mauc``."""

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    help="Train and judge classifiers by multiclass AUC.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def _about() -> None:
    """Train and judge classifiers by multiclass AUC."""


@app.command()
def demo() -> None:
    """Judge a classifier on an imbalanced sample of the handwritten digits that come with scikit-learn."""
    from mauc.demo import run_demo

    run_demo()


def main() -> None:
    """Entry point of the command."""
    app()
