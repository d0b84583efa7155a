"""Tables of rows, written line by line, so that rows are shown as they arrive.

    +----------+-------+
    |ID        |TOTAL  |
    +----------+-------+
    |a         |3      |

The columns of a push query share the width of the screen; those of a pull query are as wide as
their values, if that fits.
"""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from sql.functions.json_documents import document_text
from sql.shell.screen import DisplaySettings, clean

NARROWEST = 6
CUT = "..."


def cell_text(value: object) -> str:
    """A value in a cell: strings without quotes, other values as JSON."""
    return value if isinstance(value, str) else document_text(value, plain=True)


def row_json(names: Sequence[str], row: Sequence[object]) -> str:
    """A row as a JSON object."""
    return document_text(dict(zip(names, row, strict=True)), plain=True)


def shared_widths(count: int, width: int, look: DisplaySettings) -> list[int]:
    """Columns of equal width that fill the screen."""
    if look.column_width:
        return [look.column_width] * count
    return [max(NARROWEST, (width - 1) // max(count, 1) - 1)] * count


def fitted_widths(rows: Sequence[Sequence[str]], width: int, look: DisplaySettings) -> list[int]:
    """Columns as wide as their values; the widest shrink until all fit the screen."""
    wanted = [max(1, *map(_longest_line, column)) for column in zip(*rows, strict=True)]
    if look.column_width:
        return [look.column_width] * len(wanted)
    room = max(width - len(wanted) - 1, NARROWEST * len(wanted))
    limit = max(wanted, default=0)
    # The maximum width: narrow columns keep theirs, the wider ones share the rest.
    left = room
    for place, each in enumerate(sorted(wanted)):
        share = left // (len(wanted) - place)
        if each > share:
            limit = max(share, NARROWEST)
            break
        left -= each
    return [min(each, limit) for each in wanted]


class RowTable:
    """The lines of a table with fixed column widths."""

    def __init__(self, widths: Sequence[int], *, wrap: bool, is_bounded: bool = True) -> None:
        """`wrap`: long values take several lines, or are cut; unbounded, they lengthen lines."""
        self._widths = [max(1, each) for each in widths]
        self._wrap = wrap
        self._is_bounded = is_bounded

    def rule(self) -> str:
        """A horizontal line."""
        return "+" + "".join("-" * each + "+" for each in self._widths)

    def header(self, names: Sequence[str]) -> Iterator[str]:
        """The names of the columns between two lines."""
        yield self.rule()
        yield from self.row(names)
        yield self.rule()

    def row(self, cells: Sequence[str]) -> Iterator[str]:
        """The lines of a row: as many as its tallest cell."""
        pieces = [self._pieces(text, each) for text, each in zip(cells, self._widths, strict=True)]
        for index in range(max(map(len, pieces), default=0)):
            line = [
                self._sized(found[index] if index < len(found) else "", each)
                for found, each in zip(pieces, self._widths, strict=True)
            ]
            yield f"|{'|'.join(line)}|"

    def _sized(self, text: str, width: int) -> str:
        fits = self._is_bounded or cell_len(text) <= width
        return set_cell_size(text, width) if fits else text

    def _pieces(self, text: str, width: int) -> list[str]:
        if not self._wrap:
            plain = clean(text)
            if cell_len(plain) <= width:
                return [plain]
            return [set_cell_size(plain, max(0, width - len(CUT))) + CUT[:width]]
        result: list[str] = []
        for line in text.splitlines() or [""]:
            shown = clean(line)
            result += (chop_cells(shown, width) if self._is_bounded else [shown]) or [""]
        return result


def _longest_line(text: str) -> int:
    return max((cell_len(clean(line)) for line in text.splitlines()), default=0)
