"""SVG pictures of a terminal: rich's, but with the fonts of the reader's machine."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMAT: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
{styles}
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's format, without the font that it downloads."""


def picture(content: RenderableType, title: str, name: str, width: int) -> str:
    """Return the SVG of a terminal with `width` columns; `name` makes ids and classes unique on a page."""
    console = Console(record=True, width=width, file=io.StringIO(), color_system="truecolor")
    console.print(content)
    svg = console.export_svg(title=title, code_format=FORMAT, unique_id=name)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())
