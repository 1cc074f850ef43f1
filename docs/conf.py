"""Configure Sphinx for ``make docs``: it works offline, with warnings as errors."""

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
    app.connect("source-read", quote_rows)
    app.connect("builder-inited", check_that_every_name_is_listed)
