"""How the site is built: `make docs`. Nothing is fetched, neither here nor by who reads it."""

from __future__ import annotations

import sys
from pathlib import Path

import timetrial

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # extension, code_tables

project = "timetrial"
author = "the timetrial authors"
version = release = timetrial.__version__
extensions = ["myst_parser", "extension"]
exclude_patterns = ["code_tables"]
root_doc = "index"
smartquotes = False

myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
nitpicky = True
# Types in signatures are written as the code has them: most are not pages.
nitpick_ignore_regex = [("py:class", ".*"), ("py:data", ".*")]
python_maximum_signature_line_length = 88
highlight_language = "text"
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"

html_theme = "furo"
html_title = "timetrial"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_last_updated_fmt = None
html_theme_options = {"navigation_with_keys": True}
