"""Configure Sphinx for ``make docs``: it works offline, with warnings as errors."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import mauc

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # gallery_order

project = "mauc"
author = "the mauc authors"
copyright = "the mauc authors, BSD-3-Clause"
version = release = mauc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py", "api/backreferences"]
templates_path = ["_templates"]

# With a network, names of other projects become links: MAUC_DOCS_INTERSPHINX=1 make docs
if os.environ.get("MAUC_DOCS_INTERSPHINX") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "torchmetrics": ("https://lightning.ai/docs/torchmetrics/stable", None),
    }

# Pages
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

# The copy button leaves out prompts and the output of doctests.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# API
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
# The other checks ask for more than this library wants: descriptions of parameters whose type says all, a heading for
# one-line returns, "See Also".
numpydoc_validation_checks = {
    *("GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("PR05", "PR10", "SS01", "SS04", "YD01"),
}
numpydoc_validation_exclude = {
    r"\.set_\w+_request$",  # scikit-learn writes these into every estimator
    r"\.(__init__|__call__|forward)$",  # documented with the class
    r"\.SURROGATES$",  # dicts have the docstring of dict
    r"\.log_odds_alpha$",  # a field, whose docstring numpydoc does not see
    r"\.(Judgement|ModelScore)\.",  # fields, whose docstrings numpydoc does not see
}

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "gallery_order.ByQuestion",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("mauc",),
    "download_all_examples": False,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
}

# HTML
html_theme = "pydata_sphinx_theme"
html_title = f"mauc {version}"
html_static_path = ["_static"]
html_css_files = ["mauc.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "mauc"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "start", "coming_from", "comparison", "theory", "add_surrogate")}

logger = logging.getLogger(__name__)


# docutils writes formulas as MathML: every current browser shows it, without a script and offline.
def mathml(node, **options):
    # TeX reads \tfrac12 as one half, docutils as 12 over what follows.
    return tex2mathml(re.sub(r"frac(\d)(\d)", r"frac{\1}{\2}", node.astext()), **options)


def inline_math(self, node):
    self.body.append(mathml(node))
    raise nodes.SkipNode


def block_math(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(mathml(node, as_block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


# Benchmarks write pages without a heading.
RESULT_TITLES = {
    "acceleration": "Acceleration over pairwise loops",
    "deep": "The paper's deep experiments",
    "deep-caltech101-tuned": "Caltech-101, all methods tuned",
    "deep-cifar100-imb-32px-tuned": "CIFAR-100-Imb at 32 pixels, all methods tuned",
    "deep-cifar100-imb-tuned": "CIFAR-100-Imb at 224 pixels, all methods tuned",
    "deep-flowers102-tuned": "Flowers-102, all methods tuned",
    "deep-ham10000-part-tuned": "HAM10000, all methods tuned",
    "deep-summary-tuned": "Six real sets, all methods tuned",
    "deep-cifar100-imb": "CIFAR-100-Imb at the paper's settings",
    "deep-kddcup99": "Deep networks on KDD Cup 99",
    "deep-kddcup99-tuned": "KDD Cup 99, all methods tuned",
    "deep-simulated-cifar100-imb": "Deep networks on simulated CIFAR-100-Imb",
    "deep-simulated-user-imb": "Deep networks on simulated User-Imb",
    "linear-defaults": "Defaults of the linear model",
    "runtime-cuda": "Seconds per epoch",
    "generalization": "The gap between training and test",
    "traditional-80-10-10-standard": "Nine tables, 80/10/10 splits, standardised columns",
    "traditional-authors-rows": "Nine tables, the authors' splits, unit rows",
    "traditional-authors-standard": "Nine tables, the authors' splits, standardised columns",
}


def add_result_title(app, docname, source):
    folder, _, name = docname.partition("/")
    if folder == "results" and not source[0].lstrip().startswith("# "):
        title = RESULT_TITLES.get(name, name.replace("-", " ").capitalize())
        source[0] = f"# {title}\n\n{source[0]}"


def list_other_results(app, docname, source):
    """List the pages of results/ that its index does not name last; a glob would warn if there are none."""
    if docname == "results/index":
        others = sorted(page.stem for page in (HERE / "results").glob("*.md"))
        others = [name for name in others if name != "index" and f"\n{name}\n" not in source[0]]
        source[0] = source[0].replace("(other pages)\n", "".join(f"{name}\n" for name in others))


def quote_rows(app, docname, source):
    """Insert rows of a results table where a page asks for them, so that numbers are written once."""

    def rows(match):
        page, text = match.groups()
        lines = (HERE / page).read_text(encoding="utf-8").splitlines()
        table = [line for line in lines if line.startswith("|")]
        found = [line for line in table[2:] if text in line]
        if not found:
            logger.warning("no row of %s has %r", page, text, location=docname)
        app.env.note_dependency(page)
        return "\n".join([*table[:2], *found])

    source[0] = re.sub(r'<!-- rows of (\S+) with "(.+?)" -->', rows, source[0])


# Pages of docs/api, and the modules whose public names they list.
API_PAGES = {
    "core": ["mauc", "mauc.surrogates"],
    "model_selection": ["mauc.model_selection"],
    "nn": ["mauc.nn"],
    "theory": ["mauc.theory", "mauc.theory.bounds"],
}


def check_that_every_name_is_listed(app):
    """Warn about public names that no page lists, so that ``make docs`` fails."""
    for page, modules in API_PAGES.items():
        text = (HERE / "api" / f"{page}.rst").read_text(encoding="utf-8")
        for path in modules:
            module = import_module(path)
            section = text.split(f".. currentmodule:: {path}\n", 1)[-1].split(".. currentmodule::")[0]
            listed = set(re.findall(r"^   (\w+)$", section, re.MULTILINE))
            for name in sorted(set(module.__all__) - listed):
                logger.warning("%s.%s is public but not listed: add a line to docs/api/%s.rst", path, name, page)


def setup(app):
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("source-read", add_result_title)
    app.connect("source-read", list_other_results)
    app.connect("env-get-outdated", lambda app, env, added, changed, removed: ["results/index"])
    app.connect("source-read", quote_rows)
    app.connect("builder-inited", check_that_every_name_is_listed)
