"""``mauc fit --engine dask``: the linear model on all rows of a table of which only a sample is held here.

classes of all rows → side of each row: held out, trained on, of these some the sample
sample → features, and what the options leave open → all other rows, as features, on the workers → model
"""

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._tables.models import Choice
from mauc._tables.parts import Parts, available_memory, opened, table_rows
from mauc._text import visible

__all__ = ["connected", "fit_on_dask"]


@dataclasses.dataclass(frozen=True)
class _Partition:
    """Rows that a worker reads at a time, and where they are read."""

    parts: Parts
    path: Path
    groups: tuple[int, ...] | None
    """Groups of rows of a Parquet file; None: all of a file of CSV."""
    rows: slice
    """Among all rows of the table."""


def fit_on_dask(
    parts: Parts,
    target: str,
    drop: list[str],
    choice: Choice,
    holdout: float,
    scheduler: str | None,
    out: Path,
    report: Path | None,
    *,
    sample_rows: int = 100_000,
    judged_rows: int = 2_000_000,
) -> None:
    """Train, judge by held-out rows, write model and report. The workers must see the files under the same names.

    Of the held-out rows at most ``judged_rows`` are scored: intervals do not get narrower in the digits that are shown.
    """
    import numpy as np

    from mauc._cli.evaluate_parts import target_name
    from mauc._tables.holdout import places
    from mauc._tables.model_file import TableModel, write_model
    from mauc._tables.models import describe
    from mauc._tables.score_parts import read_classes

    output = current()
    column = target_name(parts, target, "")
    _check_options(parts, drop, choice)
    with output.working(f"reading {parts.shown}"), connected(scheduler):
        true = read_classes(parts, column)
        partitions = _partitions(parts, true.part_rows)
        side = places(true.codes, holdout, choice.seed)
        kinds = _kinds(partitions, [column, *drop])
        output.note(f"{len(side)} rows in {len(partitions)} partitions; a sample of them chooses the features")

        def between(low: float, high: float) -> list[tuple[_Partition, Any]]:
            """Of each partition the rows on that side."""
            return [(p, np.flatnonzero((side[p.rows] >= low) & (side[p.rows] < high))) for p in partitions]

        def labels(chosen: list[tuple[_Partition, Any]]) -> Any:
            return [true.labels[true.codes[p.rows][rows]] for p, rows in chosen]

        sampled = between(holdout, holdout + min(1.0, sample_rows / len(side)))
        tables = _run(_known, [(*each, kinds) for each in sampled])
        features, settings = _chosen(tables, np.concatenate(labels(sampled)), choice)
        train = between(holdout, 2.0)
        local = _fit([(*each, kinds, features) for each in train if len(each[1])], labels(train), settings)
        model = TableModel(features, local, kinds, target, f"{describe(local)}, l2 {local.l2:g}")
        test = between(0.0, min(holdout, judged_rows / len(side)))
        scores = np.concatenate(_run(_scores, [(*each, kinds, model) for each in test]))
    counts = np.bincount(true.codes[side >= holdout], minlength=len(true.labels))
    training = dict(zip(map(str, true.labels), counts.tolist(), strict=True))
    write_model(out, model)
    found = _judged(model, np.concatenate(labels(test)), scores, training)
    _tell(found, model, training, parts, {"model": out} if report is None else {"model": out, "report": report})


def _check_options(parts: Parts, drop: list[str], choice: Choice) -> None:
    for name in drop:
        if name not in parts.names:
            raise Usage(f"--drop {name!r} is no column of {parts.shown}")
    if choice.surrogate not in (None, "exponential", "squared"):
        raise Usage(
            f"--engine dask trains the surrogates exponential and squared, got {choice.surrogate!r}: choose one of "
            "them, or leave --engine out"
        )


def _judged(model: Any, labels: Any, scores: Any, training: Mapping[str, int]) -> Any:
    """The judgement by held-out rows of classes that were trained on."""
    import numpy as np

    from mauc.report import judge
    from mauc.theory.imbalance import imbalance_of_counts

    known = np.isin(labels, model.classifier.classes_)
    name = model.about.partition(":")[0]
    found = judge(labels[known], {name: scores[known]}, labels=model.classifier.classes_)
    trained = {label: n for label, n in training.items() if n}
    of_training = imbalance_of_counts(np.array(list(trained)), np.array(list(trained.values())))
    return dataclasses.replace(found, imbalance=of_training, of_training=True)


def _tell(found: Any, model: Any, training: Mapping[str, int], parts: Parts, files: Mapping[str, Path]) -> None:
    """Write the report where it is wanted, and say what came out."""
    from mauc._cli.summary import as_json, headline, sizes, worst_pairs
    from mauc.report import render

    n_rows = sum(training.values())
    if "report" in files:
        details = [
            ("table", parts.shown),
            ("target", model.target),
            ("model", model.about),
            ("training rows", str(n_rows)),
            ("test rows", f"{len(found.codes)} (random rows, stratified by class)"),
            ("columns", str(len(model.kinds))),
        ]
        write_whole(files["report"], render(found, title=f"{model.target} of {parts.name}", details=details))
    output = current()
    output.say(
        f"{model.about}: {n_rows} training rows, {len(found.codes)} test rows\n",
        *headline(found),
        "",
        sizes(found, training),
        worst_pairs(found),
        *(f"wrote {visible(file)}" for file in files.values()),
    )
    output.result({**as_json(found), "model": model.about, "training_rows": training, "files": files})


def _partitions(parts: Parts, part_rows: tuple[int, ...], rows: int = 200_000) -> list[_Partition]:
    """Groups of rows of Parquet files that a worker holds easily; whole files of CSV."""
    found, first = [], 0
    most = parts.rows_that_fit()
    for path, n_rows in zip(parts.paths, part_rows, strict=True):
        sizes = [n_rows]
        if parts.kind == "parquet":
            metadata = opened(path).metadata
            sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        elif n_rows > most:
            raise Failure(f"{path} has {n_rows} rows, and about {most} fit in memory: split it, or save it as Parquet")
        groups: list[int] = []
        begin = first
        for k, size in enumerate(sizes):
            groups.append(k)
            first += size
            if first > begin and (first - begin >= rows or k == len(sizes) - 1):
                chosen = tuple(groups) if parts.kind == "parquet" else None
                found.append(_Partition(parts, path, chosen, slice(begin, first)))
                groups, begin = [], first
    return found


def _kinds(partitions: list[_Partition], left_out: list[str]) -> dict[str, str]:
    """Of each column; what is read as a number in one file of CSV and as text in another is text."""
    asked = partitions[:1] if partitions[0].groups else partitions
    found = _run(_kinds_of, [(p, left_out) for p in asked])
    return {name: max((kinds[name] for kinds in found), key=("number", "other").index) for name in found[0]}


def _chosen(tables: list[Any], labels: Any, choice: Choice) -> tuple[Any, dict[str, Any]]:
    """Features, and the parameters of the linear model: those given, the others by cross-validation on the sample."""
    import numpy as np
    import pandas as pd

    from mauc._tables.features import make_features
    from mauc._tables.models import make_classifier

    features = make_features(choice.seed)
    X = np.asarray(features.fit_transform(pd.concat(tables, ignore_index=True)), dtype=np.float64)
    classifier = make_classifier(choice)
    names = {"surrogate": choice.surrogate or "exponential"}
    if not hasattr(classifier, "cv"):
        return features, {**names, **{k: getattr(classifier, k) for k in ("alpha", "l2", "log_loss")}}
    # A class that the sample has once or twice cannot be cross-validated.
    common, counts = np.unique(labels, return_counts=True)
    kept = np.isin(labels, common[counts > classifier.cv])
    classifier.fit(X[kept], labels[kept])
    return features, {**names, **{k: getattr(classifier, f"{k}_") for k in ("alpha", "l2", "log_loss")}}


def _fit(arguments: list[Any], labels: list[Any], settings: dict[str, Any]) -> Any:
    """The linear model of the features of all partitions, which stay on the workers."""
    import dask.array as da
    import numpy as np

    from mauc.dask import MAUCClassifier
    from mauc.dask._partitions import task

    labels = [y for y in labels if len(y)]
    width = len(arguments[0][-1].get_feature_names_out())
    blocks = [
        da.from_delayed(task(_as_features, *each), (len(y), width), np.float32)
        for each, y in zip(arguments, labels, strict=True)
    ]
    y = da.concatenate([da.from_array(each, chunks=len(each)) for each in labels])
    return MAUCClassifier(**settings).fit(da.concatenate(blocks), y).to_local()


def _run(function: Any, arguments: list[Any]) -> list[Any]:
    """The results of the workers, in order."""
    from mauc.dask._partitions import run, task

    return list(run(*(task(function, *each) for each in arguments)))


# What the workers do.


def _kinds_of(partition: _Partition, left_out: list[str]) -> dict[str, str]:
    from mauc._tables.features import kinds_of

    return kinds_of(table_rows(partition.parts, partition.path, partition.groups, ()).drop(columns=left_out))


def _known(partition: _Partition, rows: Any, kinds: Mapping[str, str]) -> Any:
    """Some rows, with the columns that the model knows."""
    from mauc._tables.features import check_finite, check_single, same_columns, text_columns

    table = table_rows(partition.parts, partition.path, partition.groups, text_columns(kinds))
    known, _ = same_columns(table, kinds, partition.path)
    check_single(known, partition.path)
    check_finite(known, partition.path)
    return known.iloc[rows]


def _as_features(partition: _Partition, rows: Any, kinds: Mapping[str, str], features: Any) -> Any:
    import numpy as np

    from mauc._tables.features import check_dates

    known = _known(partition, rows, kinds)
    check_dates(known, features, partition.path)
    return np.asarray(features.transform(known), dtype=np.float32)


def _scores(partition: _Partition, rows: Any, kinds: Mapping[str, str], model: Any) -> Any:
    import numpy as np

    known = _known(partition, rows, kinds)
    return np.asarray(model.scores(known)) if len(known) else np.empty((0, len(model.classifier.classes_)))


@contextmanager
def connected(scheduler: str | None, within: str = "10s") -> Iterator[None]:
    """Workers: those of a scheduler, or one for each core of this machine; they spill to disk what they cannot hold."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise Failure("--engine dask needs dask: pip install 'mauc[dask]'") from None
    from mauc._kernels.threads import thread_count

    if scheduler is not None:
        before = dask.config.get("scheduler", None)
        try:
            client = Client(scheduler, timeout=within)
        except (OSError, ValueError):
            dask.config.set(scheduler=before)  # a client that fails leaves itself there
            raise Failure(
                f"--scheduler {scheduler} cannot be reached within {within}: check the address, and that "
                "dask scheduler runs there"
            ) from None
        with client:
            yield
        return
    n = thread_count()
    share = int(0.7 * available_memory() / n)
    local = {"n_workers": n, "threads_per_worker": 1, "memory_limit": share, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**local, silence_logs=logging.ERROR) as cluster, Client(cluster):
        yield
