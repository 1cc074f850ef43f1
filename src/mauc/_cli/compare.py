"""``mauc compare``: models fitted on one table, by the test scores saved beside each."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import MaxSize
from mauc._cli.output import current
from mauc._tables.errors import Usage


def compare(
    models: Annotated[
        list[Path],
        typer.Argument(readable=False, help="Model files that mauc fit wrote, two or more.", show_default=False),
    ],
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Compare models of mauc fit by paired tests.

    Reads the test scores that mauc fit saves beside each model file, so it needs no table. The models must be fitted on
    the same table; extra columns are ignored. Intervals account for the groups of mauc fit --group.
    """
    from mauc._cli.summary import as_json, comparison
    from mauc._tables.saved_scores import check_same_table, common_rows, read_saved_scores
    from mauc.report import judge

    output = current()
    if not 0 < level < 1:
        raise Usage(f"--level must be a number strictly between 0 and 1, got {level:g}")
    if len(models) < 2 or len(set(models)) < len(models):
        raise Usage("mauc compare needs two different model files or more: mauc compare a.skops b.skops")
    saved = [read_saved_scores(path, max_size) for path in models]
    for path, each in zip(models[1:], saved[1:], strict=True):
        check_same_table(saved[0], each, (models[0], path))
    labels, scores, groups = common_rows(saved, models)
    for path, each in zip(models, saved, strict=True):
        if len(labels) < len(each.rows):
            output.note(
                f"{path} has {len(each.rows)} test rows; the comparison uses the {len(labels)} that all models share"
            )
    names = [path.name if [p.name for p in models].count(path.name) == 1 else str(path) for path in models]
    folds = min((each.folds for each in saved if each.folds), default=None)  # fewer folds have the larger factor
    known: dict[str, Any] = {"labels": saved[0].classes, "groups": groups, "folds": folds}
    found = judge(labels, dict(zip(names, scores, strict=True)), **known, level=level)
    abouts = {name: f"{each.about}; {each.how}" for name, each in zip(names, saved, strict=True)}
    output.say(
        f"{len(labels)} test rows",
        *(f"{name}: {about}" for name, about in abouts.items()),
        "",
        comparison(found),
        *found.notes,
    )
    output.result({**as_json(found), "about": abouts})
