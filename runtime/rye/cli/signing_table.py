"""The verbs of `rye` that sign, verify and share, and their options: data alone, as `table.py`."""

from __future__ import annotations

from typing import Final

from rye.cli.options import JSON, PROJECT, Option, Verb

TYPES: Final = ("tool", "knowledge", "directive")
_TARGETS: Final = """\
A TARGET is an item id, a file, a folder or a glob; files may lie outside any .ai. Paths are from the current directory.
In folders, names that begin with . or _ are left out, but for .ai. Quote a glob whose ** your shell does not know.
"""

SIGNING: Final = {
    "verify": Verb(
        "signing",
        "check signatures of items and files",
        (
            Option("--trust KEY.toml …", "a key document that counts for this call"),
            Option("[TARGET…]", "item id, file, folder or glob", dest="targets", completes="id"),
            Option("--all", "every item; the default without a TARGET"),
            Option("--space S", "only of this space: project, user or system"),
            Option("--key PEM", "folders: the signer's public key, or root certificates"),
            Option("--signature FILE", "a folder: its signature (default: oms.sig in it, else beside it)"),
            Option("--hook CLIENT", "answer a client's hook on standard input", choices=("claude-code",)),
            PROJECT,
            Option("--json", "print the list of rows as JSON, and nothing else"),
        ),
        _TARGETS
        + """
Verdicts: valid, or one of unsigned, malformed, tampered, untrusted_key, bad_signature, misplaced, revoked_key, reserved_id.
Exit code 0 only if every file is valid, and there was one.

A FOLDER that is signed as a whole (OpenSSF Model Signing 1.0), a skill (SKILL.md) or a plugin gets one verdict, also
unknown_signer, signer_changed, not_signable or unsupported. Without --key its signer must be one that you trust; the first
one that was good for a folder is the only one from then on.

examples:
  rye verify                                  every item of the project, of yours, and of the system bundle
  rye verify --all --space project            only the project's
  rye verify rye/file-system/read             one item, wherever it is served from
  rye verify '.ai/**/*.md' notes/plan.md      files
  rye verify download/ --trust sender.toml    with a key that counts for this call only, for ids under rye/ too
  rye verify skills/pdf --key author.pem      a folder that is signed as a whole""",
    ),
    "sign": Verb(
        "signing",
        "sign items and files",
        (
            Option("--key PEM", "the private key to sign with"),
            Option("[TARGET…]", "item id, file, folder or glob", dest="targets", completes="id"),
            Option("--all", "every item of the project's own .ai, or of --space"),
            Option("--space S", "only of this space: project, user or system"),
            Option("--signature FILE", "a folder: where its signature is written (default: oms.sig in it)"),
            Option("--ignore PATH …", "a folder: a path in it that the signature leaves out"),
            Option("--allow-links", "a folder: take links to files for the contents that they lead to"),
            PROJECT,
            Option("--json", "print the list of rows as JSON, and nothing else"),
        ),
        _TARGETS
        + """
A FOLDER without an .ai is signed as a whole (OpenSSF Model Signing 1.0): its signature is one file, oms.sig.

Read what you sign: whoever trusts your key then runs it. A file is refused if a reader would refuse it (metadata missing,
category or __item_id__ of another place); one whose current text this key has signed is left alone.
The key is --key, else the file that RYE_SIGNING_KEY names, else ${USER_SPACE:-~}/.ai/keys/private_key.pem. Without --key
only a person at a terminal signs, or whom the user's own configuration allows to (`signing: {agents: allow}`).
--all is every item of the project's own .ai, or of --space.

examples:
  rye keys generate                           once
  rye sign .ai/tools/mine/greet.py            one file
  rye sign mine/greet                         the same, by its id
  rye sign --all --key release.pem            every item of this project, with another key
  rye sign skills/pdf                         a folder, for anyone who verifies by OMS""",
    ),
    "keys": Verb(
        "signing",
        "make or show your own key",
        (
            Option("ACTION", "see below", choices=("generate", "show", "export")),
            Option("--owner NAME", "the name in your key document (generate; default: local)"),
            Option("--project [DIR]", "the project (export; default: the one you stand in)"),
            Option("--json", "print the key's fields as JSON, and nothing else"),
        ),
        """\
The pair lies in ${USER_SPACE:-~}/.ai/keys (private_key.pem 0600, public_key.pem), its document in
${USER_SPACE:-~}/.ai/trusted_keys/<fingerprint>.toml. The document makes what you sign count for you; give it to others who
should trust you, and tell them the full digest by another way. Nothing is ever overwritten.

`rye keys export` puts a copy of the document into the project, .ai/trusted_keys/<fingerprint>.toml, to be committed: whoever
clones it looks at the key and at what it admits, and runs `rye trust approve`. Until then it counts for nothing there.

examples:
  rye keys generate                           owner "local"
  rye keys generate --owner "Jo Doe"
  rye keys show --json
  rye keys export --project                   for your colleagues: commit the file that it names""",
        usage="rye keys generate [--owner NAME]\n       rye keys show\n       rye keys export [--project [DIR]]",
    ),
    "trust": Verb(
        "trust",
        "decide whose items may run",
        (
            Option("ACTION", "see below", choices=("list", "show", "add", "approve", "revoke", "settings")),
            Option("[KEY]", "a fingerprint, a full digest; for add a document, for settings a path"),
            Option("--shadow ID", "approve: a reserved id that the project may serve"),
            Option("--interpreter PATH", "approve: a program of the project that may run its tools"),
            PROJECT,
            Option("--json", "list, show: print JSON and nothing else"),
        ),
        """\
  list                 the keys that count here, and those that the project only proposes
  show KEY             one key: owner, full digest, role, document
  add KEY.toml         put a key document into your own space: its items count in every project; KEY.pem: for folders alone
  approve [KEY]        let a key that this project brings count for this project, after seeing what it would admit
  approve --interpreter PATH  let tools of this project be run by its own program, such as .venv/bin/python3, in the sandbox
  approve --shadow ID  let this project serve a reserved id (rye/…) instead of the system bundle
  settings PATH        bring back a file of git's settings, a hook or a start file that was set aside after a command
  revoke KEY           refuse a key everywhere, at once (its full digest, 64 hex digits)

KEY is a fingerprint (16 hex digits) or a full digest (64). A fingerprint only points; the full digest is what is recorded.""",
    ),
    "bundle": Verb(
        "bundle",
        "create, verify or inspect a bundle's manifest",
        (
            Option("ACTION", "what to do", choices=("create", "verify", "inspect", "release")),
            Option("--folder DIR", "the bundle's .ai folder (verify, inspect: default the system's)"),
            Option("--id ID", "the bundle's id", default="rye"),
            Option("--version VERSION", "create: the bundle's version", default="0.0.0"),
            Option("--type TYPE", "create: what kind of bundle", default="bundle"),
            Option("--description DESCRIPTION", "create: one line about it", default=""),
            Option("--key PEM", "create: the private key to sign with"),
            JSON,
        ),
        """\
A bundle is a folder `.ai` with a signed manifest: the list of its items and their digests. Nothing of a bundle is served
unless the manifest is good and lists the very file.

examples:
  rye bundle verify                                          the system bundle
  rye bundle release --key KEY.pem                           list every file of the package rye, before its wheel is built
  rye bundle create --folder src/mine/.ai --id mine --version 1.0.0 --description "My tools" --key KEY.pem""",
    ),
    "lock": Verb(
        "bundle",
        "pin a tool to the digests of its chain",
        (
            Option("TOOL", "the tool to pin", dest="item_id", completes="id"),
            PROJECT,
            Option("--json", "print the lockfile's path and content as JSON"),
        ),
        """\
From then on the tool runs here only with exactly these digests.

example:
  rye lock my/tools/report""",
    ),
    "registry": Verb(
        "registry",
        "share signed items: push, pull, search, inspect",
        (
            Option(
                "ACTION", "see below", choices=("push", "pull", "search", "list", "inspect", "verify", "yank", "key", "unpin")
            ),
            Option("[WORD…]", "see below", dest="words"),
            Option("--type T", "of this type; a tool, where one is named", choices=(*TYPES, "bundle")),
            Option("--registry R", "a directory, or oci://host[:port][/prefix]"),
            Option("--plain-http", "speak http, not https, to a host that is not this machine"),
            Option("--in NS …", "search: a namespace", dest="namespaces"),
            Option("--limit N", "search: most results", kind=int, default=20),
            Option("--from S", "push: of this space", dest="source", choices=("project", "user", "system")),
            Option("--folder DIR", "push --type bundle: the bundle's .ai folder"),
            Option(
                "--to S", "pull, inspect: into this space", dest="destination", choices=("project", "user"), default="project"
            ),
            Option("--pin", "pull: from now on only this key for the namespace"),
            Option("--allow-downgrade", "pull: a lower version than was seen or locked"),
            Option("--overwrite", "pull: replace a file that was edited here"),
            Option("--reason TEXT", "yank: why, for whoever pulls it", default=""),
            PROJECT,
            JSON,
        ),
        """\
  push ID…               send items, as they are signed, from this project or your space (a pattern such as my/* is many)
  pull REF…              fetch, verify and install; my/* is all of a namespace
  search WORDS           find items in the namespaces named with --in
  list [NAMESPACE…]      every version of every item
  inspect REF            signer, permissions, requirements, and the diff to what is installed, before a pull
  verify REF             what a pull would say, without installing
  yank REF:VERSION       mark a version as taken back: whoever pulls it is warned
  key REF                print the signer's key document, to look at and for `rye trust add`
  unpin NAMESPACE        forget which key a namespace was pinned to

REF is [oci://host/]namespace/category/name[:version][@sha256:…]. Without a host it is looked for in --registry, else in the
setting registry.default, else in ~/.ai/registry, a directory that needs no server. Credentials come from docker's files and
helpers, or DOCKER_AUTH_CONFIG; never from the command line. Exit code 3: refused by trust.

examples:
  rye registry push my/text/report
  rye registry pull my/text/report:1.2.0 --to user
  rye registry search "word count" --in my --registry oci://127.0.0.1:5000""",
    ),
    "skill": Verb(
        "signing",
        "add, list, verify or remove skills of agents' hosts",
        (
            Option("ACTION", "see below", choices=("add", "list", "verify", "remove")),
            Option("[WORD…]", "add: a folder or a ZIP file; else names of skills", dest="words"),
            Option("--for HOST", "where it looks", dest="host", choices=("agents", "claude-code")),
            Option("--user", "below your home, for all projects"),
            Option("--trust KEY.toml …", "a key document that counts for this call"),
            PROJECT,
            JSON,
        ),
        """\
  add FOLDER|ZIP     copy a skill, byte for byte, to .agents/skills, or .claude/skills with --for claude-code; pin what it is
  list               the skills of this project and of yours, each with its verdict
  verify [NAME…]     the same; exit code 3 if one is none that the setting skills.require lets pass
  remove NAME        delete its files

Verdicts are those of `rye verify FOLDER`, and pinned (as it was added, signed by nobody whom you trust) or changed. A skill
that is none by github.com/agentskills is refused with every fault; what fetches code when it is started is named.
The setting `skills: {require: signed | pinned | none}` (default: pinned) decides what passes.

examples:
  rye skill add downloads/pdf.zip --for claude-code
  rye skill verify""",
    ),
}
