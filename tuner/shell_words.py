"""Commands as text: whoever pastes one runs what was meant, whatever the names in it hold."""

import os
import shlex
from pathlib import PurePath


def write_command(*words: str | PurePath) -> str:
    """Return a command as a POSIX shell takes it: paths and words are quoted, and no path is an option."""
    return " ".join(map(quote_word, words))


def quote_word(word: str | PurePath) -> str:
    """Quote a word; a path that begins with a dash gets its folder.

    What a terminal would not show stands as a number, between the quotes for that of POSIX.1-2024.
    """
    text = str(word)
    if isinstance(word, PurePath) and text.startswith("-"):
        text = f"./{text}"
    if text.isprintable():
        return shlex.quote(text)
    signs = (chr(byte) for byte in os.fsencode(text))
    shown = (sign if " " <= sign <= "~" and sign not in "\\'" else f"\\{ord(sign):03o}" for sign in signs)
    return f"$'{''.join(shown)}'"
