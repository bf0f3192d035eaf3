# rye:signed:2026-11-21T09:13:48Z:395e70f26f77d8b497a18cb2ed5b48c3fa5cee5dc84cb6c57fc69869968f9d26:2fLoIZiF04nkH-4bDyyr4esXHnCgkrY7SL9O-PyWY4bJko_Nbcf2Eapu9HLn0brWdBmakyl-DFzZVav_nMdRAA==:b63173adc9f5699f
"""Read the authoritative text of a docPath: numbered lines, and the sha256 that a patch of it must name.

Requires: docPath, a file's project-relative path in lower case, optionally led by the project folder's name. activeFiles (the
contents that an editor holds, unsaved) win over the disk: give them here, and again with the patch.
Does not: guess: a docPath that fits two files is refused, naming both. It reads no binary file, follows no link out of the
project, and shows no line IDs (use read for those).
Side effects: none on your files; keeps line IDs in .ai/cache (or the user's state folder).
Returns: output (a line with sha256, line count and terminator, then `n: text`), and the envelope successful, result, errors,
warnings. result: path (as spelt on disk), source (active or disk), sha256 of the exact bytes (of an active file: of its text in
UTF-8), totalLines, startLine, endLine, terminator (lf, crlf, mixed, none), finalNewline, encoding. At most `limit` lines and
50 KB, cut at a line boundary; a cut ends with a [tool_result: …] line naming the call that continues. Lines over 2,000
characters are shortened visibly.
Prefer it to read when you are going to send workspace_write_patch; prefer read and edit_lines for edits of one file.
"""

from rye.toolkit import patching

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Read a file by docPath, with line numbers and the SHA-256 that a patch needs"
__item_id__ = "rye/workspace/workspace_read_file"
__envelope__ = "invoke_result"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "docPath": {
            "type": "string",
            "description": "The file: its project-relative path in lower case, optionally led by the project folder's name",
        },
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line, from 1"},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100000,
            "default": 2000,
            "description": "Most lines to return",
        },
        "activeFiles": {
            "type": "array",
            "maxItems": 200,
            "description": "Contents that an editor holds; they win over what stands on disk",
            "items": {
                "type": "object",
                "properties": {
                    "docPath": {"type": "string", "description": "The file, as above"},
                    "content": {"type": "string", "description": "Its whole text, newlines as they are"},
                },
                "required": ["docPath", "content"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["docPath"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the window with the digest of the whole."""
    active = params.get("activeFiles")
    return patching.read_file(project_path, params["docPath"], params["offset"], params["limit"], active)
