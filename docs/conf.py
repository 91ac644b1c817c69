"""The configuration of the documentation site: `make docs` builds it, without a network."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from manual.notebooks import digest  # noqa: E402

# Notebooks call the `ebql` of this environment, and one thread makes their numbers repeatable.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}

project = "ebql"
author = "The ebql authors"
project_copyright = author
version = release = installed_version("ebql")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "manual",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# A page shows its code in the language that it names; help texts and diagrams are plain text.
highlight_language = "text"

# Outputs are those of this code: a changed source file makes every notebook run again.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "docs/_build/notebooks" / digest(ROOT / "src/ebql"))
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 1800
nb_merge_streams = True
nb_render_markdown_format = "myst"

napoleon_numpy_docstring = False  # docstrings are in Google's style
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
default_role = "code"
# A short type name such as Agent may mean one of two classes; the page of its module is the one to see.
suppress_warnings = ["ref.python"]

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"ebql {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["breaks.js"]
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
