"""PDFs in `read`: pages as text, a window of pages at a time, and clear words where there is none."""

import sys

import pytest

from support.calling import done, refused
from support.harness import put_program

pypdf = pytest.importorskip("pypdf", reason="the extra `pdf` is not installed")


def pdf(*pages, broken=()):
    """Return a PDF whose pages show these lines, made by hand; the pages at `broken` have a filter that does not exist."""
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    }
    kids = []
    for at, text in enumerate(pages):
        shown = b"".join(b"(%s) Tj T* " % line.encode("latin-1") for line in text.split("\n")) if text else b""
        content = b"BT /F1 12 Tf 14 TL 50 700 Td %sET" % shown
        number = 4 + 2 * at
        objects[number] = b"<< /Length %d%s >>\nstream\n%s\nendstream" % (
            len(content),
            b" /Filter /None" if at in broken else b"",
            content,
        )
        objects[number + 1] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % number
        )
        kids.append(b"%d 0 R" % (number + 1))
    objects[2] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    data, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), {}
    for number in sorted(objects):
        places[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, objects[number])
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % places[number] for number in sorted(objects))
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(data)


def test_pages_are_shown_as_text(project):
    (project / "a.pdf").write_bytes(pdf("first page\nsecond line", "", "caf\xe9"))
    data = done("read", project, file_path="a.pdf")
    assert data["output"].startswith("[page 1 of 3]\nfirst page\nsecond line\n[page 2 of 3]\n[no text here")
    assert data["output"].endswith("[page 3 of 3]\ncafé")
    assert (data["total_pages"], data["mime_type"], data["truncated"], data["offset"]) == (3, "application/pdf", False, 1)
    assert "version" not in data
    # Beside other files, too.
    (project / "b.txt").write_text("text\n")
    assert "[page 1 of 3]\nfirst page" in done("read", project, file_path="b.txt", more=["a.pdf:1"])["output"]


def test_offset_and_limit_count_pages(project):
    (project / "a.pdf").write_bytes(pdf(*[f"text {page}" for page in range(1, 8)]))
    data = done("read", project, file_path="a.pdf", offset=3, limit=2)
    assert "[page 3 of 7]\ntext 3\n[page 4 of 7]\ntext 4\n" in data["output"]
    assert ("text 5" in data["output"], data["next_offset"]) == (False, 5)
    assert data["output"].endswith('2 of 7 pages; 3 more omitted. Call read(file_path="a.pdf", offset=5) to see more.]')
    assert done("read", project, file_path="a.pdf", offset=-1)["output"] == "[page 7 of 7]\ntext 7"
    assert "7 page(s)" in refused("bad_offset", "read", project, file_path="a.pdf", offset=8)


def test_pages_that_do_not_fit_come_with_the_next_call(project):
    pages = ["\n".join(f"{page} {line} {'x' * 60}" for line in range(300)) for page in range(6)]
    (project / "a.pdf").write_bytes(pdf(*pages))
    seen, offset = "", 1
    while offset is not None:
        data = done("read", project, file_path="a.pdf", offset=offset)
        assert len(data["output"].encode()) <= 51_200
        seen += data["output"]
        offset = data.get("next_offset")
    assert all(f"{page} {line} x" in seen for page in range(6) for line in range(300))
    # A page beyond an answer is cut, and says so.
    (project / "a.pdf").write_bytes(pdf("\n".join("x" * 70 for _ in range(2_000)), "next"))
    data = done("read", project, file_path="a.pdf")
    assert ("[the rest of this page is left out]" in data["output"], data["next_offset"]) == (True, 2)


@pytest.mark.parametrize("cut", [20, 200, 400])
def test_a_broken_document_is_refused(project, cut):
    (project / "a.pdf").write_bytes(pdf("text")[:cut])
    assert "cannot be shown: it is broken" in refused("pdf_not_read", "read", project, file_path="a.pdf")


def test_an_encrypted_document_is_refused_but_not_one_without_a_password(project):
    for password in ("", "secret"):
        writer = pypdf.PdfWriter()
        (project / "plain.pdf").write_bytes(pdf("hidden text"))
        writer.append(project / "plain.pdf")
        writer.encrypt(password, "owner", algorithm="RC4-128")
        writer.write(project / "a.pdf")
        if password:
            assert "it is encrypted" in refused("pdf_not_read", "read", project, file_path="a.pdf")
        else:
            assert "hidden text" in done("read", project, file_path="a.pdf")["output"]


def test_without_the_library_the_message_says_how_to_get_it(project, tmp_path, monkeypatch):
    (project / "a.pdf").write_bytes(pdf("text"))
    bare = put_program(tmp_path / "python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    monkeypatch.setattr(sys, "executable", str(bare))
    assert f"{bare} -m pip install pypdf" in refused("pdf_not_read", "read", project, file_path="a.pdf")


@pytest.mark.parametrize("broken", [(), (2,), (0, 4), range(5)])
def test_a_broken_page_is_named_and_the_others_are_shown(project, broken):
    texts = ["one", "two", "three", "four", "five"]
    (project / "a.pdf").write_bytes(pdf(*texts, broken=broken))
    pages = done("read", project, file_path="a.pdf")["output"].split("\n")[1::2]
    for at, text in enumerate(texts):
        assert pages[at] == text if at not in broken else pages[at].startswith("[this page cannot be read: it is broken (")
