"""A file's story, step by step, as a table's row tells it: what was seen, what was asked, what stands there then.

("others", text)            another program writes the file
("read", {more})            it is read by short addresses; ("ids", {more}): by IDs, which `<1>` to `<9>` stand for then; `<version>`: of the last view
("edit", changes, {more})   an edit that succeeds; ("not", code, changes, *said, {more}): one that is refused, and writes nothing
("undo", {more})            a change is taken back
("is", text)                what the file holds; ("says", *texts), ("hides", *texts): what the last answer says and does not
"""

import json
import re

from support.calling import done, refused, rows

NAME = "f.txt"


def play(project, *steps):
    """Play the steps; return the last answer."""
    file, names, answer, version = project / NAME, [], {}, ""

    def put(content):
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def filled(given):
        words = json.dumps(given).replace("<version>", version)
        return json.loads(re.sub(r"<(\d)>", lambda match: names[int(match[1]) - 1], words))

    for verb, *told in steps:
        more = told.pop() if told and isinstance(told[-1], dict) else {}
        if verb == "others":
            put(told[0])
        elif verb == "is":
            wanted = told[0] if isinstance(told[0], bytes) else told[0].encode()
            assert file.read_bytes() == wanted
        elif verb in ("says", "hides"):
            text = answer.get("output") or answer.get("error")
            assert [one for one in filled(told) if (one in text) != (verb == "says")] == [], text
        elif verb == "read":
            answer = done("read", project, file_path=NAME, **{"line_ids": "short", **filled(more)})
            version = answer["output"].rpartition("[version ")[2].rstrip("]")
        elif verb == "ids":
            answer = done("read", project, file_path=NAME, **more)
            names = [name for name, _ in rows(answer)]
        elif verb == "undo":
            answer = done("undo", project, **more)
        else:
            code = told.pop(0) if verb == "not" else ""
            changes, *said = told
            given = {"changes": filled(changes), "line_ids": "short", "file_path": NAME, **filled(more)}
            if code:
                stands = file.read_bytes()
                answer = {"error": refused(code, "edit_lines", project, **given)}
                assert [one for one in filled(said) if one not in answer["error"]] == [], answer
                assert "Nothing was written" in answer["error"]
                assert not [line for line in answer["error"].split("\n") if line.startswith(" ")], answer
                assert file.read_bytes() == stands
            else:
                answer = done("edit_lines", project, **given)
    return answer
