"""``mauc fit --engine dask``: a linear model on all rows of a table, of which only a sample is held in memory.

A sample of the training rows gives the features and the parameters; the workers hold the features of all rows.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._tables.options import Linear, Options, describe
from mauc._tables.parts import Parts, available_memory, open_parquet, read_target, table_rows
from mauc._text import visible

UNUSED = (
    *("time_column", "group", "refit", "drop_unlabelled", "drop_duplicates", "drop_suspects", "cv", "importance_pair"),
    *("missing", "dates", "encoding", "separator", "header", "sheet"),
)


@dataclass(frozen=True)
class _Partition:
    """The rows that a worker reads at a time."""

    parts: Parts
    path: Path
    group: int | None
    """Row group of a Parquet file; None: a whole file of CSV."""
    rows: slice
    """Among all rows of the table."""


def check_dask_options(given: dict[str, Any]) -> None:
    """Refuse options of ``mauc fit`` that the Dask engine does not have."""
    if given["engine"] != "dask":
        raise Usage(f"--engine must be memory or dask, and dask with --scheduler, got {given['engine']!r}")
    unused = [name for name in UNUSED if given[name] not in (None, False)]
    unused += ["min_rows"] if given["min_rows"] > 1 else []
    if unused:
        raise Usage(f"--engine dask does not support --{unused[0].replace('_', '-')}: leave it out")
    if given["surrogate"] not in (None, "exponential", "squared"):
        raise Usage(
            f"--engine dask trains the surrogates exponential and squared, got {given['surrogate']!r}: choose one of "
            "them, or leave --engine out"
        )


def fit_on_dask(
    parts: Parts,
    options: Options,
    scheduler: str | None,
    out: Path,
    report: Path | None,
    *,
    sample_rows: int = 100_000,
    most_tested: int = 2_000_000,
) -> None:
    """Train, test, write model and report. The workers must be able to read the files under the same paths.

    At most ``most_tested`` test rows are scored: more would not change the digits shown.
    """
    from sklearn.pipeline import Pipeline

    from mauc._cli.evaluate import target_name
    from mauc._tables.data import stratified
    from mauc._tables.model_file import TableModel, write_model
    from mauc.model_selection import some_of_each

    output, seed = current(), options.seed
    column = target_name(parts, options.target)
    for name in options.drop:
        if name not in parts.names:
            raise Usage(f"--drop {name!r} is not a column of {parts.display}")
    with output.working(f"reading {parts.display}"), connected(scheduler):
        true = read_target(parts, column)
        partitions = _partitions(parts, true.part_rows)
        train, test = stratified(true.codes, options.holdout, seed)
        sample = train[some_of_each(true.codes[train], sample_rows, seed)]
        test = test[some_of_each(true.codes[test], most_tested, seed)]
        output.note(f"{len(true.codes)} rows in {len(partitions)} partitions; a sample of them chooses the features")
        kinds = _kinds(partitions, [column, *options.drop])
        tables = _run(_read, [(p, rows, kinds) for p, rows in _by_partition(partitions, sample)])
        features, parameters = _learn(tables, true.labels[true.codes[sample]], options.linear or Linear(), seed)
        classifier = _fit(_by_partition(partitions, train), true, kinds, features, parameters)
        model = Pipeline([*features.steps, ("classifier", classifier)])
        scores = np.concatenate(_run(_scores, [(p, rows, kinds, model) for p, rows in _by_partition(partitions, test)]))
    table_model = TableModel(model, kinds, options.target, describe(classifier))
    write_model(out, table_model)
    counts = np.bincount(true.codes[train], minlength=len(true.labels))
    training = dict(zip(map(str, true.labels), counts.tolist(), strict=True))
    labels = true.labels[true.codes[test]]
    _report(table_model, labels, scores, training, parts, {"model": out} | ({"report": report} if report else {}))


def _partitions(parts: Parts, part_rows: tuple[int, ...]) -> list[_Partition]:
    """Return the row groups of Parquet files, or whole files of CSV."""
    found, first = [], 0
    most = parts.rows_that_fit()
    for path, n_rows in zip(parts.paths, part_rows, strict=True):
        sizes: dict[int | None, int] = {None: n_rows}
        if parts.format == "parquet":
            metadata = open_parquet(path).metadata
            sizes = {k: metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)}
        elif n_rows > most:
            raise Failure(f"{path} has {n_rows} rows, and about {most} fit in memory: split it, or save it as Parquet")
        for group, size in sizes.items():
            found.append(_Partition(parts, path, group, slice(first, first + size)))
            first += size
    return [partition for partition in found if partition.rows.stop > partition.rows.start]


def _by_partition(partitions: list[_Partition], rows: Any) -> list[tuple[_Partition, Any]]:
    """Return the partitions that hold some of these sorted rows, each with the positions of these rows in it."""
    found = []
    for p in partitions:
        begin, end = np.searchsorted(rows, (p.rows.start, p.rows.stop))
        if end > begin:
            found.append((p, rows[begin:end] - p.rows.start))
    return found


def _kinds(partitions: list[_Partition], left_out: list[str]) -> dict[str, str]:
    """Return the kind of each column: text if any CSV file has text in it, even if others have numbers."""
    asked = partitions if partitions[0].group is None else partitions[:1]
    found = _run(_read_kinds, [(p, left_out) for p in asked])
    return {name: max((kinds[name] for kinds in found), key=("number", "other").index) for name in found[0]}


def _learn(tables: list[Any], labels: Any, linear: Linear, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return fitted features, and the parameters of the linear model, cross-validated on the sample if not given."""
    import pandas as pd
    from sklearn.pipeline import make_pipeline

    from mauc._tables.training import numeric_columns

    features = make_pipeline(*numeric_columns(seed))
    X = features.fit_transform(pd.concat(tables, ignore_index=True))
    classifier, suffix = linear.classifier(), ""
    if hasattr(classifier, "cv"):
        # A class that the sample has once or twice cannot be cross-validated.
        common, counts = np.unique(labels, return_counts=True)
        kept = np.isin(labels, common[counts > classifier.cv])
        classifier.fit(X[kept], labels[kept])
        suffix = "_"
    parameters = {name: getattr(classifier, name + suffix) for name in ("alpha", "l2", "log_loss")}
    return features, {"surrogate": linear.surrogate or "exponential", **parameters}


def _fit(chosen: list[tuple[_Partition, Any]], true: Any, kinds: Any, features: Any, parameters: Any) -> Any:
    """Fit the linear model on the features of all partitions, which stay on the workers."""
    import dask.array as da

    from mauc.dask import MAUCClassifier
    from mauc.dask._partitions import task

    width = len(features.get_feature_names_out())
    blocks = [
        da.from_delayed(task(_transform, p, rows, kinds, features), (len(rows), width), np.float32)
        for p, rows in chosen
    ]
    labels = [true.labels[true.codes[p.rows][rows]] for p, rows in chosen]
    y = da.concatenate([da.from_array(each, chunks=len(each)) for each in labels])
    return MAUCClassifier(**parameters).fit(da.concatenate(blocks), y).to_local()


def _report(
    model: Any, labels: Any, scores: Any, training: dict[str, int], parts: Parts, files: dict[str, Path]
) -> None:
    """Judge the model on the test rows whose class has training rows, write the report, and print the summary."""
    from mauc._cli.summary import as_json, headline, sizes, worst_pairs
    from mauc.report import judge, render
    from mauc.theory.imbalance import imbalance_of_counts

    known = np.isin(labels, model.classifier.classes_)
    found = judge(labels[known], {model.about.partition(":")[0]: scores[known]}, labels=model.classifier.classes_)
    trained = {label: n for label, n in training.items() if n}
    imbalance = imbalance_of_counts(np.array(list(trained)), np.array(list(trained.values())))
    found = replace(found, imbalance=imbalance, of_training=True)
    n_rows = sum(training.values())
    if "report" in files:
        details = [
            ("table", parts.display),
            ("target", model.target),
            ("model", model.about),
            ("training rows", str(n_rows)),
            ("test rows", f"{len(found.codes)} (random, stratified rows)"),
            ("columns", str(len(model.kinds))),
        ]
        write_whole(files["report"], render(found, title=f"{parts.name}: predicting {model.target}", details=details))
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


def _run(function: Any, arguments: list[Any]) -> list[Any]:
    """Return the results of the workers, in order."""
    from mauc.dask._partitions import run, task

    return list(run(*(task(function, *each) for each in arguments)))


# Run by the workers.


def _read_kinds(partition: _Partition, left_out: list[str]) -> dict[str, str]:
    from mauc._tables.columns import read_kinds

    return read_kinds(table_rows(partition.parts, partition.path, partition.group, ()).drop(columns=left_out))


def _read(partition: _Partition, rows: Any, kinds: dict[str, str]) -> Any:
    """Return some rows, with the columns of the model."""
    from mauc._tables.columns import check_finite, check_single, same_columns, text_columns

    table = table_rows(partition.parts, partition.path, partition.group, text_columns(kinds))
    known, _ = same_columns(table, kinds, partition.path)
    check_single(known, partition.path)
    check_finite(known, partition.path)
    return known.iloc[rows]


def _transform(partition: _Partition, rows: Any, kinds: dict[str, str], features: Any) -> Any:
    return np.asarray(features.transform(_read(partition, rows, kinds)), dtype=np.float32)


def _scores(partition: _Partition, rows: Any, kinds: dict[str, str], model: Any) -> Any:
    return np.asarray(model.predict_proba(_read(partition, rows, kinds)))


@contextmanager
def connected(scheduler: str | None, within: str = "10s") -> Iterator[None]:
    """Connect to the workers of a scheduler, or start one per core; they spill to disk what does not fit in memory."""
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
            dask.config.set(scheduler=before)  # a client that fails stays set as the scheduler
            raise Failure(
                f"--scheduler {scheduler} cannot be reached within {within}: check the address, and that dask "
                "scheduler runs there"
            ) from None
        with client:
            yield
        return
    n = thread_count()
    share = int(0.7 * available_memory() / n)
    local = {"n_workers": n, "threads_per_worker": 1, "memory_limit": share, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**local, silence_logs=logging.ERROR) as cluster, Client(cluster):
        yield
