"""Temporary: the names of the format under their old home."""

from trainer.core.errors import InvalidText
from trainer.core.format import (  # noqa: F401
    DELETE,
    DONE,
    INSERT,
    INSERT_AFTER,
    KEEP,
    OPERATIONS,
    POSITION,
    REPLACE,
    SUBSTITUTE,
    detokenize,
    escape,
    is_special,
    tokenize,
    unescape,
)


def split(text: str, tokens: str) -> tuple[str, ...]:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidText("the text is not valid Unicode: it holds half of a surrogate pair")
    return tokenize(text, tokens)


join = detokenize
