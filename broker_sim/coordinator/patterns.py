"""Regular expressions of clients. Kafka's are RE2's, these are Python's."""

import re

__all__ = ["compile_pattern"]


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return the expression. Raises `re.error` for one that cannot be read or is too large."""
    try:
        return re.compile(text)
    except (OverflowError, RecursionError) as error:
        raise re.error(str(error), text) from error
