"""``mauc fit --engine dask``: the linear model on all rows of a table of which only a sample is held here.

classes of all rows → side of each row: held out, trained on, of these some the sample
sample → features, and what the options leave open → all other rows, as features, on the workers → model
"""

import dataclasses
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mauc._io import write_whole
from mauc._text import visible
from mauc.cli.output import current
from mauc.tables.errors import Failure, Usage
from mauc.tables.models import Choice
from mauc.tables.parts import Parts, available_memory, opened, table_rows

__all__ = ["fit_on_dask"]

SAMPLE_ROWS = 100_000
PARTITION_ROWS = 200_000
JUDGED_ROWS = 2_000_000
"""At most, whatever is held out: intervals do not get narrower in the digits that are shown."""
REACHED_WITHIN = "10s"


@dataclasses.dataclass(frozen=True)
class _Partition:
    """Rows that a worker reads at a time."""

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
) -> None:
    """Train, judge by held-out rows, write model and report. The workers must see the files under the same names."""
    import numpy as np

    from mauc.cli.evaluate_parts import target_name
    from mauc.report import judge, render
    from mauc.tables.holdout import places
    from mauc.tables.model_file import TableModel, write_model
    from mauc.tables.score_parts import read_classes
    from mauc.theory.imbalance import imbalance_of_counts

    output = current()
    column = target_name(parts, target, "")
    for name in drop:
        if name not in parts.names:
            raise Usage(f"--drop {name!r} is no column of {parts.shown}")
    with output.working(f"reading {parts.shown}"), _connected(scheduler) as compute:
        true = read_classes(parts, column)
        partitions = _partitions(parts, true.part_rows)
        side = places(true.codes, holdout, choice.seed)
        kinds = _kinds(parts, partitions, [column, *drop], compute)
        output.note(f"{len(side)} rows in {len(partitions)} partitions; a sample of them chooses the features")

        def between(low: float, high: float) -> list[tuple[_Partition, Any]]:
            """Of each partition the rows on that side."""
            return [(p, np.flatnonzero((side[p.rows] >= low) & (side[p.rows] < high))) for p in partitions]

        def labels(chosen: list[tuple[_Partition, Any]]) -> Any:
            return [true.labels[true.codes[p.rows][rows]] for p, rows in chosen]

        sampled = between(holdout, holdout + min(1.0, SAMPLE_ROWS / len(side)))
        tables = compute("sample", _known, [(parts, p, kinds, rows) for p, rows in sampled])
        features, settings = _chosen(tables, np.concatenate(labels(sampled)), choice)
        del tables
        train = between(holdout, 2.0)
        local = compute.fit(
            [(parts, p, kinds, rows, features) for p, rows in train if len(rows)],
            [y for y in labels(train) if len(y)],
            settings,
        )
        model = TableModel(features, local, kinds, target, _described(local))
        test = between(0.0, min(holdout, JUDGED_ROWS / len(side)))
        scores = np.concatenate(compute("judge", _scores, [(parts, p, kinds, rows, model) for p, rows in test]))
    test_labels = np.concatenate(labels(test))
    known = np.isin(test_labels, local.classes_)
    name = model.about.partition(":")[0]
    found = judge(test_labels[known], {name: scores[known]}, labels=local.classes_)
    counts = np.bincount(true.codes[side >= holdout], minlength=len(true.labels))
    trained = counts > 0
    found = dataclasses.replace(
        found, imbalance=imbalance_of_counts(true.labels[trained], counts[trained]), of_training=True
    )
    training = dict(zip(map(str, true.labels), counts.tolist(), strict=True))
    write_model(out, model)
    files = {"model": out}
    if report is not None:
        details = [
            ("table", parts.shown),
            ("target", target),
            ("model", model.about),
            ("training rows", str(counts.sum())),
            ("test rows", f"{known.sum()} (random rows, stratified by class)"),
            ("columns", str(len(kinds))),
        ]
        write_whole(report, render(found, title=f"{target} of {parts.name}", details=details))
        files["report"] = report
    _tell(found, model.about, training, int(known.sum()), files)


def _tell(found: Any, about: str, training: Mapping[str, int], n_judged: int, files: Mapping[str, Path]) -> None:
    from mauc.cli.summary import as_json, headline, sizes, worst_pairs

    output = current()
    output.say(
        f"{about}: {sum(training.values())} training rows, {n_judged} test rows\n",
        *headline(found),
        "",
        sizes(found, training),
        worst_pairs(found),
        *(f"wrote {visible(file)}" for file in files.values()),
    )
    output.result({**as_json(found), "model": about, "training_rows": training, "files": files})


def _described(local: Any) -> str:
    from mauc.tables.models import describe

    return f"{describe(local)}, l2 {local.l2:g}"


def _partitions(parts: Parts, part_rows: tuple[int, ...]) -> list[_Partition]:
    """Groups of rows of Parquet files that a worker holds easily; whole files of CSV."""
    found, first = [], 0
    most = parts.rows_that_fit()
    for path, n_rows in zip(parts.paths, part_rows, strict=True):
        if parts.kind != "parquet":
            if n_rows > most:
                raise Failure(
                    f"{path} has {n_rows} rows, and about {most} fit in memory: split it, or save it as Parquet"
                )
            found.append(_Partition(path, None, slice(first, first + n_rows)))
            first += n_rows
            continue
        metadata = opened(path).metadata
        groups: list[int] = []
        begin = first
        for k in range(metadata.num_row_groups):
            groups.append(k)
            first += metadata.row_group(k).num_rows
            if first - begin >= PARTITION_ROWS or k == metadata.num_row_groups - 1:
                found.append(_Partition(path, tuple(groups), slice(begin, first)))
                groups, begin = [], first
    return [p for p in found if p.rows.stop > p.rows.start]


def _kinds(parts: Parts, partitions: list[_Partition], left_out: list[str], compute: "_Compute") -> dict[str, str]:
    """Of each column; what is read as a number in one file of CSV and as text in another is text."""
    asked = partitions[:1] if parts.kind == "parquet" else partitions
    found = compute("kinds", _kinds_of, [(parts, p, left_out) for p in asked])
    return {name: max((kinds[name] for kinds in found), key=("number", "other").index) for name in found[0]}


def _chosen(tables: list[Any], labels: Any, choice: Choice) -> tuple[Any, dict[str, Any]]:
    """Features, and the parameters of the linear model: those given, the others by cross-validation on the sample."""
    import numpy as np
    import pandas as pd

    from mauc.tables.features import make_features
    from mauc.tables.models import make_classifier

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


# What the workers do.


def _read(parts: Parts, partition: _Partition, kinds: Mapping[str, str]) -> Any:
    from mauc.tables.features import check_finite, check_single, same_columns, text_columns

    table = table_rows(parts, partition.path, partition.groups, text_columns(kinds))
    known, _ = same_columns(table, kinds, partition.path)
    check_single(known, partition.path)
    check_finite(known, partition.path)
    return known


def _kinds_of(parts: Parts, partition: _Partition, left_out: list[str]) -> dict[str, str]:
    from mauc.tables.features import kinds_of

    table = table_rows(parts, partition.path, partition.groups, ())
    return kinds_of(table.drop(columns=left_out))


def _known(parts: Parts, partition: _Partition, kinds: Mapping[str, str], rows: Any) -> Any:
    return _read(parts, partition, kinds).iloc[rows]


def _as_features(parts: Parts, partition: _Partition, kinds: Mapping[str, str], rows: Any, features: Any) -> Any:
    import numpy as np

    from mauc.tables.features import check_dates

    known = _known(parts, partition, kinds, rows)
    check_dates(known, features, partition.path)
    return np.asarray(features.transform(known), dtype=np.float32)


def _scores(parts: Parts, partition: _Partition, kinds: Mapping[str, str], rows: Any, model: Any) -> Any:
    import numpy as np

    known = _known(parts, partition, kinds, rows)
    return np.asarray(model.scores(known)) if len(known) else np.empty((0, len(model.classifier.classes_)))


class _Compute:
    """Work of many partitions, on the workers that are connected."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex[:8]
        """In the names of tasks: a scheduler may know those of another run."""

    def __call__(self, name: str, function: Any, arguments: list[Any]) -> list[Any]:
        """The results, in order."""
        import dask

        work = dask.delayed(function)
        tasks = (work(*each, dask_key_name=f"mauc-{name}-{self.run}-{k}") for k, each in enumerate(arguments))
        return list(dask.compute(*tasks))

    def fit(self, arguments: list[Any], labels: list[Any], settings: dict[str, Any]) -> Any:
        """The linear model of the features of all partitions, which stay on the workers."""
        import dask
        import dask.array as da
        import numpy as np

        from mauc.dask import MAUCClassifier

        work = dask.delayed(_as_features)
        width = len(arguments[0][-1].get_feature_names_out())
        blocks = [
            da.from_delayed(work(*each, dask_key_name=f"mauc-features-{self.run}-{k}"), (len(y), width), np.float32)
            for k, (each, y) in enumerate(zip(arguments, labels, strict=True))
        ]
        y = da.concatenate([da.from_array(each, chunks=len(each)) for each in labels])
        return MAUCClassifier(**settings).fit(da.concatenate(blocks), y).to_local()


@contextmanager
def _connected(scheduler: str | None) -> Iterator[_Compute]:
    """Workers: those of a scheduler, or one for each core of this machine; they spill to disk what they cannot hold."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise Failure("--engine dask needs dask: pip install 'mauc[dask]'") from None
    from mauc.kernels.threads import thread_count

    if scheduler is not None:
        before = dask.config.get("scheduler", None)
        try:
            client = Client(scheduler, timeout=REACHED_WITHIN)
        except (OSError, ValueError):
            dask.config.set(scheduler=before)  # a client that fails leaves itself there
            raise Failure(
                f"--scheduler {scheduler} cannot be reached within {REACHED_WITHIN}: check the address, and that "
                "dask scheduler runs there"
            ) from None
        with client:
            yield _Compute()
        return
    n = thread_count()
    share = int(0.7 * available_memory() / n)
    local = {"n_workers": n, "threads_per_worker": 1, "memory_limit": share, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**local, silence_logs=logging.ERROR) as cluster, Client(cluster):
        yield _Compute()
