"""Tables as LaTeX: the package booktabs, every name escaped, intervals as formulas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perhop.files import arguments
from perhop.show.numbers import MISSING
from perhop.show.text import printable

_NUMBER = re.compile(r"([−+-]?)(\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "±": r"\ensuremath{\pm}",
    "−": r"\ensuremath{-}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "→": r"\ensuremath{\rightarrow}",
    "↑": r"\ensuremath{\uparrow}",
    "↓": r"\ensuremath{\downarrow}",
    "★": r"\ensuremath{\star}",
    "µ": r"\textmu{}",
    "–": "--",
    "…": r"\dots{}",
    "\ufffd": "?",
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
    # At the beginning of a line, these would be arguments of the line break before.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}
_EACH = re.compile("|".join(map(re.escape, _SPECIAL)) + "|(?<=-)-")
_LABEL = re.compile(r"[A-Za-z0-9:._/+-]+")


def latex_table(
    lines: Sequence[Mapping[str, str]], caption: str | None = None, label: str | None = None
) -> str:
    """Records as a `tabular`, within a `table` if there is a caption or a label.

    Args:
        lines: At least one, of the same keys.
        caption: Above the table, plain text: it is escaped.
        label: For references to it: letters, digits and `: . _ / + -`.

    Raises:
        ValueError: The label has other characters, or there is no line.
    """
    if not lines:
        raise ValueError("no rows, so no table")
    if label is not None and not _LABEL.fullmatch(label):
        raise ValueError(f"label {label!r}: letters, digits and : . _ / + - only, such as tab:classes")
    if caption is not None:
        arguments.text("caption", caption)
    heads = list(lines[0])
    numeric = [all(_is_number(line[head]) for line in lines) for head in heads]
    columns = "".join("r" if one else "l" for one in numeric)
    tabular = [
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _line([escaped(head) for head in heads]),
        "\\midrule",
        *(_line([_cell(line[head]) for head in heads]) for line in lines),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    if caption is None and label is None:
        return "\n".join(tabular) + "\n"
    above = [] if caption is None else [f"\\caption{{{escaped(caption)}}}"]
    above += [] if label is None else [f"\\label{{{label}}}"]
    return "\n".join(["\\begin{table}", "\\centering", *above, *tabular, "\\end{table}"]) + "\n"


def escaped(text: str) -> str:
    """Text as LaTeX shows it, in one line; letters beyond Latin need XeLaTeX or LuaLaTeX."""
    line = printable(" ".join(text.split()))
    # The second of two hyphens would make a dash of them.
    return _EACH.sub(lambda found: _SPECIAL.get(found[0], "{}-"), line)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _is_number(text: str) -> bool:
    return text == MISSING or _NUMBER.fullmatch(text) is not None


def _cell(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return escaped(text)
    sign, mean, half = found[1].replace("−", "-"), found[2], found[3]
    if half is None:
        return f"${sign}{mean}$" if sign else mean
    return f"${sign}{mean} \\pm {half}$"
