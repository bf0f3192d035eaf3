"""`rye verify`, `rye sign` and `rye keys`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rye import api
from rye.cli.shared import (
    EXIT_NO,
    EXIT_OK,
    EXIT_TRUST,
    Verb,
    add_common_options,
    print_json,
    print_table,
    printable,
    project_of,
    require_person_or_key,
)
from rye.errors import RyeError, UsageError
from rye.items import release_list
from rye.journal import own_files
from rye.journal.own_files import OwnFile
from rye.trust import keys

_PROGRESS_FROM = 200
_TARGETS = """\
A TARGET is an item id, a file, a folder or a glob; files may lie outside any .ai. Paths are from the current directory.
In folders, names that begin with . or _ are left out, but for .ai. Quote a glob whose ** your shell does not know.
"""

_VERIFY_EPILOG = f"""\
{_TARGETS}
Verdicts: valid, or one of unsigned, malformed, tampered, untrusted_key, bad_signature, misplaced, revoked_key, reserved_id.
Exit code 0 only if every file is valid, and there was one.

examples:
  rye verify                                  every item of the project, of yours, and of the system bundle
  rye verify --all --space project            only the project's
  rye verify rye/file-system/read             one item, wherever it is served from
  rye verify '.ai/**/*.md' notes/plan.md      files
  rye verify download/ --trust sender.toml    with a key that counts for this call only, for ids under rye/ too
"""

_SIGN_EPILOG = f"""\
{_TARGETS}
Read what you sign: whoever trusts your key then runs it. A file is refused if a reader would refuse it (metadata missing,
category or __item_id__ of another place); one whose current text this key has signed is left alone.
The key is --key, else the file that RYE_SIGNING_KEY names, else ${{USER_SPACE:-~}}/.ai/keys/private_key.pem. Without --key
only a person at a terminal signs, or whom the user's own configuration allows to (`signing: {{agents: allow}}`).
--all is every item of the project's own .ai, or of --space.

examples:
  rye keys generate                           once
  rye sign .ai/tools/mine/greet.py            one file
  rye sign mine/greet                         the same, by its id
  rye sign --all --key release.pem            every item of this project, with another key
"""

_KEYS_EPILOG = """\
The pair lies in ${USER_SPACE:-~}/.ai/keys (private_key.pem 0600, public_key.pem), its document in
${USER_SPACE:-~}/.ai/trusted_keys/<fingerprint>.toml. The document makes what you sign count for you; give it to others who
should trust you, and tell them the full digest by another way. Nothing is ever overwritten.

`rye keys export` puts a copy of the document into the project, .ai/trusted_keys/<fingerprint>.toml, to be committed: whoever
clones it looks at the key and at what it admits, and runs `rye trust approve`. Until then it counts for nothing there.

examples:
  rye keys generate                           owner "local"
  rye keys generate --owner "Jo Doe"
  rye keys show --json
  rye keys export --project                   for your colleagues: commit the file that it names
"""


def _build_verify(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye verify [TARGET… | --all] [--space S] [--trust KEY.toml …] [--project DIR] [--json]"
    parser.epilog = _VERIFY_EPILOG
    parser.add_argument(
        "--trust", metavar="KEY.toml", action="append", default=[], help="a key document that counts for this call"
    )
    _add_targets(parser, "every item; the default without a TARGET")


def _build_sign(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye sign TARGET… | --all [--space S] [--key PEM] [--project DIR] [--json]"
    parser.epilog = _SIGN_EPILOG
    parser.add_argument("--key", metavar="PEM", help="the private key to sign with")
    _add_targets(parser, "every item of the project's own .ai, or of --space")


def _build_keys(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye keys generate [--owner NAME]\n       rye keys show\n       rye keys export [--project [DIR]]"
    parser.epilog = _KEYS_EPILOG
    parser.add_argument(
        "action", choices=("generate", "show", "export"), help="make your key pair, show it, or put its document into a project"
    )
    parser.add_argument("--owner", metavar="NAME", help="the name in your key document (generate; default: local)")
    parser.add_argument("--project", metavar="DIR", nargs="?", help="the project (export; default: the one you stand in)")
    parser.add_argument("--json", action="store_true", help="print the key's fields as JSON, and nothing else")


def _add_targets(parser: argparse.ArgumentParser, all_means: str) -> None:
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="item id, file, folder or glob")
    parser.add_argument("--all", action="store_true", help=all_means)
    parser.add_argument("--space", metavar="S", help="only of this space: project, user or system")
    add_common_options(parser, "print the list of rows as JSON, and nothing else")


def _verify(args: argparse.Namespace) -> int:
    rows = api.verify_iter(
        args.targets,
        project_path=project_of(args.project),
        space=args.space,
        trust=args.trust,
        everything=args.all or not args.targets,
    )
    results = list(_with_progress(rows, "verified"))
    if args.json:
        print_json(results)
    else:
        table = ({**row, "signer": _signer(row), "reason_and_next_step": row["hint"]} for row in results)
        _print_rows(results, table, "verdict", "valid")
        if (args.all or not args.targets) and not release_list.is_listed():
            _say("the code of the package rye is not checked: this is no release, so there is no signed list of its files.")
    if not results:
        _say("nothing to verify: there is no item. Name a file, a folder or an id.")
    if any(row["verdict"] != "valid" for row in results):
        return EXIT_TRUST
    return EXIT_OK if results else EXIT_NO


def _sign(args: argparse.Namespace) -> int:
    require_person_or_key("sign items", args.key, key_option=True)
    rows = api.sign_iter(
        args.targets, project_path=project_of(args.project), key=args.key, everything=args.all, space=args.space
    )
    results = list(_with_progress(rows, "signed"))
    if args.json:
        print_json(results)
    else:
        table = ({**row, "reason_and_next_step": " ".join(filter(None, (row["error"], row["hint"])))} for row in results)
        _print_rows(results, table, "status", "signed")
        for warning in (one for row in results for one in row.get("warnings", ())):
            _say(printable(warning))
    if not results:
        _say("nothing to sign: there is no item. Name a file, a folder or an id.")
    return EXIT_OK if results and all(row["status"] != "failed" for row in results) else EXIT_NO


def _keys(args: argparse.Namespace) -> int:
    if args.action != "generate" and args.owner is not None:
        raise UsageError("bad_option", f"`rye keys {args.action}` takes no --owner.", "Leave it out.")
    if args.action != "show":
        require_person_or_key("make a key that signs for them, or put theirs into a project")
    key = keys.generate(args.owner or "local") if args.action == "generate" else keys.show()
    if args.action == "export":
        key["exported"] = _export(key, project_of(args.project))
    if args.json:
        print_json(key)
        return EXIT_OK
    for name in ("fingerprint", "digest", "owner", "public_key", "document", "exported"):
        if name in key:
            print(f"{name.replace('_', ' '):<12} {printable(str(key[name]))}")
    if not key["trusted"]:
        _say("this key does not count here: its document is missing or is another key's.")
    elif args.action == "generate":
        _say("your colleagues' clones need the key, too: `rye keys export --project` puts it into a project.")
    elif args.action == "export":
        _say("commit that file. Whoever clones the project runs `rye trust approve`, and asks you for the full digest.")
    return EXIT_OK


def _export(key: Mapping[str, Any], project: str) -> str:
    """Put the document of the user's key into a project, and return where it lies."""
    if not key["trusted"]:
        raise RyeError("no_key_document", f"Your key has no document {key['document']}.", "Run `rye trust add KEY.toml`.")
    path = os.path.join(os.path.realpath(project), ".ai", "trusted_keys", f"{key['fingerprint']}.toml")
    data = Path(key["document"]).read_bytes()
    if not os.path.isfile(path) or Path(path).read_bytes() != data:
        own_files.write([OwnFile(path, data, 0o644)], "rye/cli/keys", [project])
    return path


def _signer(row: Mapping[str, Any]) -> str:
    """Show a name only for a proven signature; a bare fingerprint is what the line claims."""
    return " ".join(filter(None, (row["signer"], f"({row['owner']})" if row["owner"] else "")))


def _print_rows(rows: list[dict[str, Any]], table: Iterable[Mapping[str, Any]], outcome: str, first: str) -> None:
    if not rows:
        return
    print_table(table, (outcome, "target", "signer", "reason_and_next_step"))
    counts = Counter(row[outcome] for row in rows)
    # The good outcome first, the rest by name.
    order = sorted(counts, key=lambda name: (name != first, name))
    print(f"{len(rows):,} file{'s' * (len(rows) != 1)}: {', '.join(f'{counts[name]:,} {name}' for name in order)}.")


def _with_progress(rows: Iterator[dict[str, Any]], verb: str) -> Iterator[dict[str, Any]]:
    """Pass rows on; on a terminal, count those of a long run."""
    shown_at = 0.0
    for count, row in enumerate(rows, 1):
        # Ten times a second at most: a terminal over a slow line would otherwise hold up the run.
        if count > _PROGRESS_FROM and sys.stderr.isatty() and time.monotonic() > shown_at + 0.1:
            shown_at = time.monotonic()
            print(f"\r{count:,} files {verb}…", end="", file=sys.stderr, flush=True)
        yield row
    if shown_at:
        # Clears the counter's line before the table is printed over it.
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(f"rye: {text}", file=sys.stderr)


VERBS = {
    "verify": Verb("Check signatures: what is signed, by whom, and whether it is in its right place.", _build_verify, _verify),
    "sign": Verb("Sign items and files with your key.", _build_sign, _sign),
    "keys": Verb("Make or show your own signing key, or put it into a project for others.", _build_keys, _keys),
}
