"""Credentials for OCI registries: docker's files, helpers and environment; never the command line, never a project.

Asked in this order, for the very host (and port) of the registry:

1. the environment: `DOCKER_AUTH_CONFIG`, a document as below; or `RYE_REGISTRY_HOST` with `RYE_REGISTRY_USERNAME` and
   `RYE_REGISTRY_PASSWORD`;
2. `REGISTRY_AUTH_FILE`, `$XDG_RUNTIME_DIR/containers/auth.json`, `${DOCKER_CONFIG:-~/.docker}/config.json`, each `{"auths":
   {host: {"auth": base64 of user:password, "identitytoken"?}}, "credHelpers": {host: name}, "credsStore":
   name}`. A helper `docker-credential-<name>` is run by its absolute path with `get`, and reads the host.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from typing import Any

from rye.call import context, safe_text
from rye.errors import RegistryError
from rye.fs import atomic
from rye.plain_class import Record, field
from rye.process.child import environment_outside, program_on_path
from rye.workspace.workspace import Workspace, find_root

_MOST = 1 << 20
_HELPER_SECONDS = 20
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Credentials(Record):
    """What opens a registry; nothing of it is ever printed.

    Attributes:
        username, password: for basic authentication, or for asking for a token.
        identity: an OAuth refresh token, in place of both.
    """

    username: str = field(default="", shown=False)
    password: str = field(default="", shown=False)
    identity: str = field(default="", shown=False)

    @property
    def basic(self) -> str:
        """The value of the header for basic authentication."""
        return f"Basic {base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()}"


def credentials(host: str) -> Credentials | None:
    """Return the credentials for a host (`name[:port]`); None where there are none.

    Raises:
        RegistryError: `bad_credentials`, a helper or file that is named for the host fails.
    """
    for_host = os.environ.get("RYE_REGISTRY_HOST") == host
    if for_host and (password := os.environ.get("RYE_REGISTRY_PASSWORD")):
        return Credentials(os.environ.get("RYE_REGISTRY_USERNAME", ""), password)
    return next((found for document in _documents() if (found := _from_document(document, host)) is not None), None)


def _documents() -> list[dict[str, Any]]:
    texts = [os.environ["DOCKER_AUTH_CONFIG"].encode()] if os.environ.get("DOCKER_AUTH_CONFIG") else []
    runtime, config = os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("DOCKER_CONFIG")
    paths = [
        os.environ.get("REGISTRY_AUTH_FILE"),
        f"{runtime}/containers/auth.json" if runtime else None,
        f"{config or os.path.expanduser('~/.docker')}/config.json",
    ]
    texts += [atomic.read(path, _MOST) or b"" for path in paths if path]
    return [record for text in texts if isinstance(record := safe_text.of_json(text), dict)]


def _from_document(document: dict[str, Any], host: str) -> Credentials | None:
    helpers = document.get("credHelpers")
    helper = helpers.get(host) if isinstance(helpers, dict) else None
    auths_field = document.get("auths")
    auths = auths_field if isinstance(auths_field, dict) else {}
    entry = next((auth for name, auth in auths.items() if _host_of(name) == host and isinstance(auth, dict)), None)
    if isinstance(helper, str):
        return _from_helper(helper, host)
    if entry and any(entry.get(part) for part in ("auth", "username", "identitytoken")):
        return _from_auth(entry, host)
    store = document.get("credsStore")
    # Docker records a host whose secret is in the credential store as an empty entry.
    return _from_helper(store, host) if isinstance(store, str) and entry is not None else None


def _host_of(name: str) -> str:
    return name.removeprefix("https://").removeprefix("http://").partition("/")[0]


def _from_auth(auth: dict[str, Any], host: str) -> Credentials:
    try:
        # Docker itself ignores NUL bytes at the end of the pair.
        pair = base64.b64decode(str(auth.get("auth", "")), validate=True).decode().rstrip("\0")
    except ValueError:
        raise _bad(host, "its entry in docker's file is not base64") from None
    username, _, password = pair.partition(":")
    fields = {"username": username, "password": password, "identitytoken": ""}
    return Credentials(*(str(auth.get(name) or usual) for name, usual in fields.items()))


def _from_helper(name: str, host: str) -> Credentials | None:
    """Ask a helper; None where it knows nothing of the host."""
    projects = _projects()
    path = program_on_path(f"docker-credential-{name}", *projects) if _NAME.fullmatch(name) else None
    if path is None:
        raise _bad(host, f"the helper docker-credential-{name[:40]} is not on the PATH, outside of the project")
    try:
        # A helper needs the user's own environment: it talks to a keychain.
        # From `/`, so that a helper finds no configuration of the project's.
        env = environment_outside(*projects)
        result = subprocess.run(
            [path, "get"], input=host.encode(), capture_output=True, check=False, timeout=_HELPER_SECONDS, cwd="/", env=env
        )
        if result.returncode != 0:
            return None
        record = json.loads(result.stdout[:_MOST])
        username, secret = record["Username"], record["Secret"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as err:
        raise _bad(host, f"the helper docker-credential-{name} fails ({type(err).__name__})") from None
    # Docker's convention: this user name says that the secret is a refresh token.
    return Credentials(identity=secret) if username == "<token>" else Credentials(str(username), str(secret))


def _projects() -> list[os.stat_result]:
    """Return the project that one works in, and that of the call, which may be another: what they bring is no helper."""
    roots = [find_root()]
    workspace = context.current().workspace
    if isinstance(workspace, Workspace):
        roots.append(workspace.root)
    return [*map(os.stat, roots)]


def _bad(host: str, why: str) -> RegistryError:
    return RegistryError("bad_credentials", f"No credentials for {host}: {why}.", "Run `docker login` for the host again.")
