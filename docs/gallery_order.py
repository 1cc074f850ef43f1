"""Order the gallery: judging, training, theory, networks. Files that are not listed come last."""

ORDER = (
    "plot_rare_class.py",
    "plot_pair_matrix.py",
    "plot_ovo_ova.py",
    "plot_compare_models.py",
    "plot_surrogates.py",
    "plot_plugin.py",
    "plot_nystroem.py",
    "plot_stacking.py",
    "plot_more_data.py",
    "plot_dask.py",
    "plot_torch_loop.py",
    "plot_batch_coverage.py",
)


class ByQuestion:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        return (ORDER.index(filename) if filename in ORDER else len(ORDER), filename)
