"""Mails as their words: what people wrote. Headers tell too much of where a mail was kept: they go."""

from __future__ import annotations

import email
import html
import re
from email.message import Message

from timetrial.texts.words import words_of

# What nobody reads: comments, scripts and style sheets with their content, then every tag.
_UNREAD = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def mail_words(content: bytes) -> list[str]:
    """Of its parts that are text, decoded, one after the other; of HTML what is between the tags."""
    words: list[str] = []
    for part in email.message_from_bytes(content).walk():
        if part.get_content_maintype() == "text":
            text = _decoded(part)
            words += words_of(html.unescape(_UNREAD.sub(" ", text)) if _is_html(part, text) else text)
    return words


def _decoded(part: Message) -> str:
    """Whatever can be read of it: mails name character sets that are none, or are not what they say."""
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    try:
        return content.decode(part.get_content_charset("latin-1"))
    except (LookupError, ValueError):
        return content.decode("latin-1")


def _is_html(part: Message, text: str) -> bool:
    return part.get_content_subtype() == "html" or text.lstrip()[:6].lower() in ("<html>", "<!doct")
