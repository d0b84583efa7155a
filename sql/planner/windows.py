"""Windows of aggregates, and the formats of keys between steps."""

from collections.abc import Sequence

from sql.catalog import FormatInfo, WindowInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.formats import check_format, key_wrapping
from sql.plan import WindowSpec
from sql.properties import duration_ms
from sql.syntax.queries import Duration, Window, WindowKind

DAY_MS = 86_400_000


def window_info(window: Window) -> WindowInfo:
    """The windows of an aggregate's keys."""
    size = None if window.kind is WindowKind.SESSION else _ms(window.size)
    return WindowInfo(window.kind, size)


def window_spec(window: Window) -> WindowSpec:
    """The windows of an aggregate; the default grace period is a day."""
    size = _ms(window.size)
    if size is None or size <= 0:
        raise StatementFailed("the size of a window must be positive")
    advance = _ms(window.advance)
    if advance is not None and not 0 < advance <= size:
        raise StatementFailed(
            f"a hopping window of {size} ms cannot advance by {advance} ms: the advance must be "
            "positive and at most the size"
        )
    grace = _ms(window.grace)
    return WindowSpec(
        window.kind,
        size,
        advance,
        _ms(window.retention),
        max(DAY_MS - size, 0) if grace is None else grace,
    )


def _ms(duration: Duration | None) -> int | None:
    return None if duration is None else duration_ms(duration.count, duration.unit)


def internal_key_format(source: FormatInfo, columns: Sequence[Column], default: str) -> FormatInfo:
    """The source's format if it supports the new key, otherwise the default one or JSON."""
    names = [source.name, default] if source.name != "NONE" else [default]
    for name in names:
        delimiter = source.delimiter if name == source.name else None
        info = FormatInfo(name, key_wrapping(name, len(columns)), delimiter=delimiter)
        try:
            check_format(info, columns, is_key=True)
        except StatementFailed as error:
            if error.message.startswith("Map keys"):
                raise
            continue
        return info
    return FormatInfo("JSON", key_wrapping("JSON", len(columns)))
