"""Speed and memory against peers, as ratios from one run. Run each with ``python -m``, from the root of the repository.

| work | command | page in ``docs/results`` |
|---|---|---|
| ``mauc_score``, the risk and its gradient: speed, growth, memory | ``benchmarks`` | ``core.md`` |
| the torch losses against cross-entropy | ``benchmarks.torch_loss`` (``--recommended``) | ``torch.md`` |
| the metric on a GPU | ``benchmarks.gpu_metric`` | ``torch.md`` |
| ``MAUCClassifier.fit`` on KDD Cup 99 | ``benchmarks.kddcup99`` | ``kddcup99-20.md`` |
| defaults of ``MAUCClassifier`` | ``benchmarks.linear_defaults`` | ``linear-defaults.md`` |
| a linear fit against the authors' code | ``benchmarks.authors_code`` | ``authors-code.md`` |
| ``mauc fit``: scores and time limits | ``benchmarks.fit_tables`` | ``fit-tables.md`` |
| ``predict_proba`` of the stack, many rows and one | ``benchmarks.stack_prediction`` | – |
| ``mauc evaluate`` of files larger than memory | ``benchmarks.stream`` | ``guide/scaling.md`` |
| ``mauc.dask`` | ``benchmarks.dask_scale`` | ``dask-scale.md`` |

``benchmarks.public_tables`` writes the public tables that ``experiments tabular`` and ``fit_tables`` read.
"""
