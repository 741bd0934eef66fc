"""Settings of Sphinx. Nothing here makes a page ask another server for anything."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

project = "perhop"
author = "The perhop developers"
project_copyright = author
version = release = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
exclude_patterns = ["hero.md"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
smartquotes = False  # they would make dashes of the two hyphens of options

# Docstrings are in Google's style; `name` in them is code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
# Types of other packages, whose documentation is on other servers, and names that stand for types.
nitpick_ignore_regex = [
    ("py:.*", r"(?!perhop\.(?!_engine)).*"),
    # What the unions of the builder call subclasses of `perhop.Aqm` and `perhop.Meter`.
    ("py:class", r"perhop\.scenario\.base\.Python(Application|Aqm|Block|CongestionControl|Meter)"),
    # What results hold for the package itself; the attributes that name them say what users read of them.
    ("py:class", r"perhop\.(captures|coursework|planning|rerunning|show|studies|sweeps)\.\w+\.\w+"),
]

html_theme = "furo"
html_title = "perhop"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ff", "color-brand-content": "#6cb6ff"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"
