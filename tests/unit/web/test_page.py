"""An answer as text: its charset, what a reader would not see, where its links lead, and how much memory it may take."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from rye.errors import RyeError
from rye.web import html_text
from rye.web import page as web_page
from rye.web.client import HttpAnswer

HERE = "https://site.example/docs/page.html"


def answer(body, content_type="text/html"):
    return HttpAnswer(HERE, 200, "OK", {"content-type": content_type}, body)


def markdown(html):
    return html_text.read(html.encode(), HERE, "markdown", main_only=True)["text"]


@pytest.mark.parametrize(
    ("content_type", "body", "charset"),
    [
        ("text/plain; charset=utf-8", b"\xff\xfea\0", "utf-16-le"),
        ("text/plain; charset=iso-8859-1", b"\x80", "cp1252"),
        ('text/plain; charset="UTF-8"', b"x", "utf-8"),
        ("text/html; charset=nonsense", b"<meta charset=shift_jis>", "cp932"),
        ("text/html", b"<meta charset=utf-16>", "utf-8"),
        ("text/html; charset=utf-7", b"+ADw-script+AD4-", "utf-8"),
        ("text/html; charset=base64", b"PHA+", "utf-8"),
        ("text/html; charset=idna", b"x", "utf-8"),
        ("text/xml", b'<?xml version="1.0" encoding="koi8-r"?>', "koi8-r"),
        ("text/plain", "sch\u00f6n".encode(), "utf-8"),
    ],
)
def test_the_charset_is_decided_by_mark_header_and_document(content_type, body, charset):
    assert web_page._charset(answer(body, content_type)) == charset


@pytest.mark.parametrize(
    ("href", "shown"),
    [
        ("more.html", "[x](https://site.example/docs/more.html)"),
        ("//cdn.example/a", "[x](https://cdn.example/a)"),
        ("HTTP://other.example/", "[x](HTTP://other.example/)"),
        ("MailTo:a@b.example", "[x](MailTo:a@b.example)"),
        *(
            (bad, "x")
            for bad in (
                "javascript:alert(1)",
                "JaVaScRiPt:alert(1)",
                "&#106;avascript:alert(1)",
                "java&#10;script:alert(1)",
                "vbscript:x",
                "data:text/html,x",
                "file:///etc/passwd",
                "blob:https://x/1",
                "http://[x",
            )
        ),
    ],
)
def test_links_lead_to_the_web_or_are_text(href, shown):
    assert markdown(f'<p><a href="{href}">x</a></p>') == f"{shown}\n"


HIDING = [
    "display:none",
    "DISPLAY : NONE",
    "display:/**/none",
    "visibility:hidden",
    "font-size:0",
    "font-size:0.0px",
    "opacity:0",
    "text-indent:-999px",
    "position:absolute;left:-9999px",
    "height:0;overflow:hidden",
    "overflow: hidden; max-height: 0px",
    "width:0;height:0;overflow:clip",
    "clip:rect(0,0,0,0)",
    "clip: rect(0 0 0 0)",
    "color:transparent",
]
SHOWING = [
    "font-size:0.9em",
    "opacity:0.5",
    "height:0",
    "line-height:0.8;overflow:hidden",
    "left:-9px",
    "background-color:transparent",
]
PAGE = """<!doctype html><html><head><title>The  Guide</title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a></nav><main><h1>Install</h1><p>Run <code>make</code>, then <a href="next.html">go on</a>.<p>Second &amp; last
<ul><li>one<li>two</ul><table><tr><td>x<td>y</table><script>alert(1)</script></main><footer>Imprint</footer></body></html>"""


@pytest.mark.parametrize(
    ("html", "text"),
    [
        *[(f"<p>seen</p><p style='{style}'>obey</p>", "seen\n") for style in HIDING],
        # Control: what a style does not hide.
        *[(f"<p style='{style}'>seen</p>", "seen\n") for style in SHOWING],
        # A page that a script would show.
        ("<html hidden><body><p>text</p>", "text\n"),
        ("<html><body style='display:none'><p>text</p>", "text\n"),
        ("<html style='opacity:0'><body hidden><p>text</p>", "text\n"),
        # Hidden in hidden; and what was not closed inside a hidden element.
        ("<div hidden><p hidden>a<script>b</script></p></div><svg><title>c</title></svg><p>seen</p>", "seen\n"),
        ("<p>seen</p><li hidden>a<ul><li>secret</ul></li>", "seen\n"),
        ("<p>seen</p><div hidden><p>a<p>secret</div>", "seen\n"),
        ("<p>seen</p><p hidden>a<b>b<p>secret", "seen\n"),
        *[
            (f'<base href="{base}"><p><a href="x">x</a></p>', "x\n")
            for base in ("javascript:alert(1)//", "data:text/html,", "file:///etc/")
        ],
        ("<ul><li>a<ol><li>b</li></ol></li><li>c</li></ul>", "- a\n   1. b\n- c\n"),
        (PAGE, f"# Install\n\nRun `make`, then [go on]({HERE[:-9]}next.html).\n\nSecond & last\n\n- one\n- two\n\n| x | y |\n"),
    ],
)
def test_a_page_is_what_a_reader_sees_of_it(html, text):
    assert markdown(html) == text


def test_a_whole_page_is_read_by_a_process_of_its_own():
    page = web_page.read(answer(PAGE.encode()), "text", main_only=False)
    assert (page.title, page.main) == ("The Guide", False)
    assert ("Imprint" in page.text, "](" in page.text, "alert" in page.text) == (True, False, False)


def test_text_and_json_are_shown_without_hidden_characters():
    page = web_page.read(answer("a\u202eb\u200bc\x1b[31m\r\nd".encode(), "text/plain; charset=utf-8"), "text", main_only=True)
    assert page.text == "abc[31m\nd\n"
    page = web_page.read(answer(b'{"a":[1,"\xc3\xa9"]}', "application/json"), "markdown", main_only=True)
    assert (page.text, page.notes) == ('{\n  "a": [\n    1,\n    "\u00e9"\n  ]\n}\n', ())


@pytest.mark.parametrize(
    "body",
    [
        # The indent of each number would be 1,000 characters: 60 MB of 120 KB.
        b"[" * 500 + b"0," * 60_000 + b"0" + b"]" * 500,
        b"[" * 100_000,
        b"[" + b"{}," * 400_000 + b"{}]",
        b"{not json",
    ],
    ids=["deep", "unclosed", "many", "invalid"],
)
def test_json_that_would_fill_the_memory_comes_as_it_is(body):
    page = web_page.read(answer(body, "application/json"), "markdown", main_only=True)
    assert page.text.replace("\n", "") == body.decode()
    assert page.notes


def test_control_indented_by_the_standard_library_it_is_hundreds_of_times_as_large():
    body = "[" * 500 + "0," * 2_000 + "0" + "]" * 500
    assert len(json.dumps(json.loads(body), indent=2)) > 300 * len(body)


@pytest.mark.parametrize(
    ("content_type", "body"), [("image/png", b"x"), ("application/pdf", b"x"), ("", b"a\0b"), ("text/plain", b"\x7fELF\0")]
)
def test_what_is_no_text_is_refused_with_type_and_size(content_type, body):
    with pytest.raises(RyeError) as caught:
        web_page.read(answer(body, content_type), "markdown", main_only=True)
    assert caught.value.code == "not_text"
    assert str(len(body)) in caught.value.message


@pytest.mark.slow
def test_a_page_made_to_hurt_ends_in_its_time():
    started = time.process_time()
    for html in ("<div>" * 200_000, "<p>" * 300_000, "<a href='" * 100_000, "<!--" * 100_000):
        with suppress(web_page.PageError):
            web_page.read(answer(html.encode()), "markdown", main_only=True, seconds=0.5)
    assert time.process_time() - started < 10
