"""White space as ECMAScript defines it: existing logs were written by that definition (SPEC 5.2).

It differs from `str.strip()` both ways: U+FEFF counts, and U+0085 and U+001C to U+001F do not.
"""

from __future__ import annotations

from typing import Final

ES_WHITE_SPACE: Final = (
    "\u0009\u000b\u000c\ufeff"  # ECMA-262 12.2: TAB, VT, FF, ZWNBSP
    "\u0020\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u202f\u205f\u3000"  # 12.2: USP, every code point of Unicode category Zs
    "\u000a\u000d\u2028\u2029"  # 12.3: line terminators, which trimming removes too (22.1.3.32.1)
)


def trim(text: str) -> str:
    """Return `text` without the white space around it, as `String.prototype.trim` does."""
    return text.strip(ES_WHITE_SPACE)
