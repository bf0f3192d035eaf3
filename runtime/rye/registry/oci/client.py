"""A registry over HTTP: the OCI distribution protocol, version 1.1 (`/v2/`), as registries of images speak it.

Every answer is hashed again here. A fetched manifest is cached in `${USER_SPACE:-~}/.ai/cache/registry/`, and
asked for by its digest as entity tag, so that looking again costs a short answer each.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from rye.call.safe_text import plain
from rye.config import user_dirs
from rye.errors import RegistryError, UsageError
from rye.fs import atomic
from rye.registry.oci.http import WAITS, Ask, Host, PassingError, refused
from rye.registry.oci.layout import check_digest
from rye.registry.oci.manifest import INDEX_TYPE, MAX_MANIFEST_BYTES, MEDIA_TYPE, Layer, Pushed, digest_of
from rye.web.client import Answer

_MAX_TAGS_BYTES = 16 << 20
_MAX_TAGS = 200_000
_MAX_PAGES = 400
_MAX_CACHED = 20_000
# What a server answers when others send the same blob at the same time.
_COLLIDED = (400, 404, 409, 416)
# Each further one answers a manifest that the server holds damaged: as many pushes would have to be killed in it.
_MOST_VARIANTS = 4
_PATH = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')
_ACCEPT = f"{MEDIA_TYPE}, {INDEX_TYPE}"


class Server:
    """A registry's server; see `rye.registry.oci.store.Store`."""

    def __init__(self, name: str, *, plain_http: bool = False) -> None:
        """Take `oci://host[:port][/prefix]`.

        Raises:
            UsageError: `bad_registry`.
        """
        host, _, prefix = name.removeprefix("oci://").rstrip("/").partition("/")
        if prefix and not _PATH.fullmatch(prefix):
            raise UsageError("bad_registry", f"Not a prefix of repositories: {prefix[:200]!r}.", "Use a-z, 0-9, . _ - and /.")
        self._host = Host(host, plain_http=plain_http)
        self._prefix = f"{prefix}/" if prefix else ""
        self.name = f"oci://{host}{'/' + prefix if prefix else ''}"
        self.parallel = 8

    def repositories(self) -> list[str]:
        """Return nothing: a registry shows its catalogue to few."""
        return []

    def tags(self, repository: str) -> list[str]:
        """Return the tags of a repository, page by page; [] where there is none."""
        url: str | None = f"/v2/{self._prefix}{repository}/tags/list?n=1000"
        found: set[str] = set()
        # Bounded: a server could link its pages in a circle.
        for _ in range(_MAX_PAGES):
            if url is None:
                return sorted(found)
            answer = self._host.ask(Ask("GET", url, self._scope(repository), "tags", _MAX_TAGS_BYTES))
            if answer.status == 404:
                return sorted(found)
            if answer.status != 200:
                raise refused(self._host.host, answer, "tags")
            found.update(self._tag_list(answer))
            url = self._following(answer)
        raise self._bad_tags("its pages do not end")

    def _tag_list(self, answer: Answer) -> list[str]:
        try:
            tags = json.loads(answer.body)["tags"] or []
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._bad_tags(
                "it is HTML" if answer.body.lstrip()[:1] == b"<" else "it is not as a registry writes it"
            ) from None
        if not isinstance(tags, list) or len(tags) > _MAX_TAGS or not all(isinstance(tag, str) for tag in tags):
            raise self._bad_tags("it is not a list of names")
        return tags

    def _following(self, answer: Answer) -> str | None:
        match = _NEXT.search(answer.headers.get("link", ""))
        if match is None:
            return None
        # The next page must be the registry's own, since the request carries its token.
        if not match[1].startswith(("/v2/", f"{self._host.origin}/v2/")):
            raise self._bad_tags("its next page is elsewhere")
        return match[1]

    def _bad_tags(self, why: str) -> RegistryError:
        return RegistryError(
            "bad_tags", f"The list of tags of {self.name} cannot be used: {why}.", "Check the registry's address."
        )

    def manifest(self, repository: str, reference: str) -> bytes:
        """Return a manifest by tag or digest; see `Store.manifest`."""
        url = f"/v2/{self._prefix}{repository}/manifests/{reference}"
        cache_path = _cache_path(f"{self._host.origin}{url}")
        known = _read_cached(cache_path)
        headers = {"Accept": _ACCEPT, **({"If-None-Match": f'"{digest_of(known)}"'} if known is not None else {})}
        answer = self._host.ask(Ask("GET", url, self._scope(repository), "manifest", MAX_MANIFEST_BYTES, headers))
        # Unchanged: the cached manifest is checked like a fresh one.
        if answer.status == 304 and known is not None:
            return self._checked(known, reference, answer)
        if answer.status == 404:
            raise RegistryError(
                "not_in_registry",
                f"There is no {plain(reference, 150)} in {repository} of {self.name}.",
                "`rye registry list NAMESPACE` shows what there is.",
            )
        if answer.status != 200:
            raise refused(self._host.host, answer, "manifest")
        data = self._checked(answer.body, reference, answer)
        # An error page that came with status 200 must not be cached.
        if data[:1] == b"{":
            _write_cached(cache_path, data)
        return data

    def _checked(self, data: bytes, reference: str, answer: Answer) -> bytes:
        """Check a manifest against its digest, and against the digest that the server states."""
        stated = answer.headers.get("docker-content-digest", "")
        if reference.startswith("sha256:"):
            check_digest(data, reference, "manifest")
        if stated.startswith("sha256:") and stated != digest_of(data):
            raise RegistryError(
                "digest_header_mismatch",
                f"{self._host.host} calls the manifest {stated[:19]}…; it is {digest_of(data)[:19]}….",
                "It was changed on the way or in the registry; nothing was installed.",
            )
        return data

    def blob(self, repository: str, layer: Layer) -> bytes:
        """Return a blob; see `Store.blob`."""
        url = f"/v2/{self._prefix}{repository}/blobs/{layer.digest}"
        answer = self._host.ask(Ask("GET", url, self._scope(repository), "blob", layer.size))
        if answer.status == 404:
            raise RegistryError(
                "blob_missing",
                f"The blob {layer.digest[:19]}… is not in {repository} of {self.name}.",
                "Ask the registry's owner to push it again.",
            )
        if answer.status != 200:
            raise refused(self._host.host, answer, "blob")
        if answer.body.lstrip()[:1] == b"<" and "html" in answer.headers.get("content-type", ""):
            raise RegistryError("blob_is_html", f"{self._host.host} answers with a page of HTML.", "Nothing was installed.")
        # Before the digest, which would fail as well but would blame a forger for a broken line.
        if len(answer.body) < layer.size:
            raise RegistryError(
                "blob_truncated",
                f"The blob {layer.digest[:19]}… has {len(answer.body):,} of {layer.size:,} bytes.",
                "Try again later; nothing was installed.",
            )
        check_digest(answer.body, layer.digest, "blob")
        return answer.body

    def push(self, repository: str, pushed: Iterable[Pushed]) -> list[str]:
        """Send items, several at once; each becomes visible with its manifest, which is sent last. See `Store.push`."""
        from concurrent.futures import ThreadPoolExecutor

        items = list(pushed)
        blobs = {digest: data for one in items for digest, data in one.blobs.items()}
        with ThreadPoolExecutor(self.parallel) as pool:
            # All blobs before the first manifest: a server refuses a manifest whose blobs it lacks.
            list(pool.map(lambda blob: self._push_blob(repository, *blob), blobs.items()))
            return list(pool.map(lambda one: self._push_manifest(repository, one), items))

    def _push_manifest(self, repository: str, one: Pushed) -> str:
        """Send a manifest until the server can serve it; return its digest.

        A server that was killed while it wrote may hold half of the bytes under their digest. It accepts the same bytes
        again without writing them, and never serves them. Other bytes of the same meaning have another digest.
        """
        for added in range(_MOST_VARIANTS):
            variant = Pushed(one.tag, one.manifest + b"\n" * added, one.blobs)
            self._put_manifest(repository, variant)
            if self._serves(repository, variant.manifest):
                return digest_of(variant.manifest)
        raise RegistryError(
            "manifest_damaged",
            f"{self.name} accepts {plain(one.tag, 150)} in {repository}, but does not serve it.",
            "Ask the registry's owner to check its storage, then push again.",
        )

    def _serves(self, repository: str, manifest: bytes) -> bool:
        """Tell whether a manifest that was accepted is served, whole; by its digest, since another push may take the tag."""
        url = f"/v2/{self._prefix}{repository}/manifests/{digest_of(manifest)}"
        return self._has(
            Ask("HEAD", url, self._scope(repository, "pull,push"), "manifest", headers={"Accept": _ACCEPT}), manifest
        )

    def _has(self, ask: Ask, data: bytes) -> bool:
        """Tell whether a HEAD request finds these bytes; a server that was killed may hold half of them, or fail at them."""
        try:
            answer = self._host.ask(ask)
        except PassingError:
            return False
        return answer.status == 200 and answer.headers.get("content-length", str(len(data))) == str(len(data))

    def _put_manifest(self, repository: str, one: Pushed) -> None:
        """Send a manifest; if the server misses a blob that another client was sending too, send the blobs again first."""
        url = f"/v2/{self._prefix}{repository}/manifests/{one.tag}"
        ask = Ask(
            "PUT", url, self._scope(repository, "pull,push"), "upload", headers={"Content-Type": MEDIA_TYPE}, body=one.manifest
        )
        for wait in (*WAITS, None):
            answer = self._host.ask(ask)
            if answer.status == 201:
                break
            if wait is None or answer.status not in _COLLIDED:
                raise refused(self._host.host, answer, "upload")
            time.sleep(wait)
            for digest, data in one.blobs.items():
                self._push_blob(repository, digest, data)
        stated = answer.headers.get("docker-content-digest", "")
        if stated:
            check_digest(one.manifest, stated, "manifest")

    def _push_blob(self, repository: str, digest: str, data: bytes) -> None:
        scope = self._scope(repository, "pull,push")
        if not self._has(Ask("HEAD", f"/v2/{self._prefix}{repository}/blobs/{digest}", scope, "blob"), data):
            self._upload(repository, scope, digest, data)

    def _upload(self, repository: str, scope: str, digest: str, data: bytes) -> None:
        """Send a blob; restart an upload that broke, because its state on the server is unknown."""
        for wait in (*WAITS, None):
            upload = self._host.ask(Ask("POST", f"/v2/{self._prefix}{repository}/blobs/uploads/", scope, "upload"))
            location = upload.headers.get("location", "")
            if upload.status != 202 or not location:
                raise refused(self._host.host, upload, "upload")
            # The server names where to send to: `ask` judges it, and sends credentials to the server's own origin only.
            url = f"{location}{'&' if '?' in location else '?'}digest={digest}"
            headers = {"Content-Type": "application/octet-stream"}
            try:
                answer = self._host.ask(Ask("PUT", url, scope, "upload", headers=headers, body=data, retry=False))
            except PassingError:
                if wait is None:
                    raise
            else:
                if answer.status == 201:
                    return
                if wait is None or answer.status not in _COLLIDED:
                    raise refused(self._host.host, answer, "upload")
            time.sleep(wait)

    def _scope(self, repository: str, actions: str = "pull") -> str:
        return f"repository:{self._prefix}{repository}:{actions}"


def _cache_path(url: str) -> Path:
    return Path(user_dirs.user_ai()) / "cache" / "registry" / sha256(url.encode()).hexdigest()


def _read_cached(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_MANIFEST_BYTES)
    except OSError:
        return None


def _write_cached(path: Path, data: bytes) -> None:
    """Cache a manifest; ignore failures, because an empty cache costs only time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Counted at one write in 256: listing the folder each time would cost more than it saves.
        if path.name[:2] == "00" and len(names := list(path.parent.iterdir())) > _MAX_CACHED:
            for name in names:
                name.unlink(missing_ok=True)
        atomic.write(path, data, 0o600, durably=False)
