"""``mauc compare``: models that were fitted on one table, by the scores that were kept when each was judged."""

from pathlib import Path
from typing import Annotated

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.options import MaxSize
from mauc._cli.output import current
from mauc._tables.errors import Usage

__all__ = ["compare"]


def compare(
    models: Annotated[
        list[Path],
        typer.Argument(readable=False, help="Model files that mauc fit wrote, two or more.", show_default=False),
    ],
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Paired tests between models of mauc fit on the same table.

    Takes the scores that mauc fit keeps beside each model file, of rows that the model had not seen. Tables that differ
    are refused; columns that one of them has more are no difference. Groups of mauc fit --group are respected.
    """
    from mauc._cli.summary import as_json, comparison
    from mauc._tables.kept import check_same_table, common_rows, read_kept
    from mauc.report import judge

    output = current()
    if not 0 < level < 1:
        raise Usage(f"--level must be a number strictly between 0 and 1, got {level:g}")
    if len(models) < 2 or len(set(models)) < len(models):
        raise Usage("mauc compare takes two model files or more, each once: mauc compare a.skops b.skops")
    kept = [read_kept(path, max_size) for path in models]
    for path, each in zip(models[1:], kept[1:], strict=True):
        check_same_table(kept[0], each, (models[0], path))
    labels, scores, groups = common_rows(kept, models)
    for path, each in zip(models, kept, strict=True):
        if len(labels) < len(each.rows):
            output.note(
                f"{path} has {len(each.rows)} test rows; the comparison uses the {len(labels)} that all models share"
            )
    names = [path.name if [p.name for p in models].count(path.name) == 1 else str(path) for path in models]
    models_scores = dict(zip(names, scores, strict=True))
    found = judge(labels, models_scores, labels=kept[0].classes, groups=groups, level=level)
    abouts = {name: f"{each.about}; {each.how}" for name, each in zip(names, kept, strict=True)}
    output.say(
        f"{len(labels)} test rows",
        *(f"{name}: {about}" for name, about in abouts.items()),
        "",
        comparison(found),
        *found.notes,
    )
    output.result({**as_json(found), "about": abouts})
