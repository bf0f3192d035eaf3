"""A registry over HTTP: the OCI distribution protocol, version 1.1 (`/v2/`), as registries of images speak it.

Every answer is hashed again here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rye.call.safe_text import plain
from rye.errors import RegistryError, UsageError
from rye.registry.oci.http import PassingError, RegistryHost, RegistryRequest, unexpected_status
from rye.registry.oci.layout import check_digest
from rye.registry.oci.manifest import INDEX_TYPE, MAX_MANIFEST_BYTES, MEDIA_TYPE, Layer, Pushed, digest_of, from_json
from rye.web.client import HttpAnswer

_MAX_TAGS_BYTES = 16 << 20
_MAX_TAGS = 200_000
_MAX_PAGES = 400
_PATH = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')
_ACCEPT = f"{MEDIA_TYPE}, {INDEX_TYPE}"


class RegistryServer:
    """A registry's server; see `rye.registry.oci.store.Store`."""

    def __init__(self, name: str, *, plain_http: bool = False) -> None:
        """Take `oci://host[:port][/prefix]`.

        Raises:
            UsageError: `bad_registry`.
        """
        host, _, prefix = name.removeprefix("oci://").rstrip("/").partition("/")
        if prefix and not _PATH.fullmatch(prefix):
            raise UsageError("bad_registry", f"Not a prefix of repositories: {prefix[:200]!r}.", "Use a-z, 0-9, . _ - and /.")
        self._host = RegistryHost(host, plain_http=plain_http)
        self._prefix = f"{prefix}/" if prefix else ""
        self.name = f"oci://{host}{'/' + prefix if prefix else ''}"
        self.parallel = 8

    def repositories(self) -> list[str]:
        """Return nothing: a registry shows its catalogue to few."""
        return []

    def tags(self, repository: str) -> list[str]:
        """Return the tags of a repository, page by page; [] where there is none."""
        path, found = "tags/list?n=1000", set[str]()
        # Bounded: a server could link its pages in a circle.
        for _ in range(_MAX_PAGES):
            answer = self._ask("GET", repository, path, "tags", limit=_MAX_TAGS_BYTES)
            if answer.status == 404:
                return sorted(found)
            record = from_json(answer.body, self._bad_tags)
            # Some registries write null for no tags.
            tags = (record["tags"] or []) if isinstance(record, dict) and "tags" in record else None
            if (
                not isinstance(tags, list)
                or len(found) + len(tags) > _MAX_TAGS
                or not all(isinstance(tag, str) for tag in tags)
            ):
                raise self._bad_tags("it is not as a registry writes it")
            found.update(tags)
            following = _NEXT.search(answer.headers.get("link", ""))
            if following is None:
                return sorted(found)
            path = following[1]
            # The next page must be the registry's own, since the request carries its token.
            if not path.startswith(("/v2/", f"{self._host.origin}/v2/")):
                raise self._bad_tags("its next page is elsewhere")
        raise self._bad_tags("its pages do not end")

    def _bad_tags(self, why: str) -> RegistryError:
        what = f"The list of tags of {self.name} cannot be used: {why}."
        return RegistryError("bad_tags", what, "Check the registry's address.")

    def manifest(self, repository: str, reference: str) -> bytes:
        """Return a manifest by tag or digest; see `Store.manifest`."""
        path, headers = f"manifests/{reference}", {"Accept": _ACCEPT}
        answer = self._ask("GET", repository, path, "manifest", limit=MAX_MANIFEST_BYTES, headers=headers)
        if answer.status == 404:
            why = f"There is no {plain(reference, 150)} in {repository} of {self.name}."
            raise RegistryError("not_in_registry", why, "`rye registry list NAMESPACE` shows what there is.")
        data = answer.body
        stated = answer.headers.get("docker-content-digest", "")
        if reference.startswith("sha256:"):
            check_digest(data, reference, "manifest")
        if stated.startswith("sha256:") and stated != digest_of(data):
            why = f"{self._host.host} calls the manifest {stated[:19]}…; it is {digest_of(data)[:19]}…."
            hint = "It was changed on the way or in the registry; nothing was installed."
            raise RegistryError("digest_header_mismatch", why, hint)
        return data

    def blob(self, repository: str, layer: Layer) -> bytes:
        """Return a blob; see `Store.blob`."""
        answer = self._ask("GET", repository, f"blobs/{layer.digest}", "blob", limit=layer.size)
        if answer.status == 404:
            why = f"The blob {layer.digest[:19]}… is not in {repository} of {self.name}."
            raise RegistryError("blob_missing", why, "Ask the registry's owner to push it again.")
        if answer.body.lstrip()[:1] == b"<" and "html" in answer.headers.get("content-type", ""):
            raise RegistryError("blob_is_html", f"{self._host.host} answers with a page of HTML.", "Nothing was installed.")
        # Before the digest, which would fail as well but would blame a forger for a broken line.
        if len(answer.body) < layer.size:
            why = f"The blob {layer.digest[:19]}… has {len(answer.body):,} of {layer.size:,} bytes."
            raise RegistryError("blob_truncated", why, "Try again later; nothing was installed.")
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
        """Send a manifest under its digest, and once the server serves it name it by its tag; return its digest.

        A server that was killed while it wrote may hold half of the bytes, and accept the same again without writing them.
        """
        digest = digest_of(one.manifest)
        self._put_manifest(repository, digest, one.manifest)
        # By its digest, since another push may take the tag.
        if not self._has(repository, f"manifests/{digest}", "manifest", one.manifest):
            why = f"{self.name} accepts {plain(one.tag, 150)} in {repository}, but does not serve it."
            hint = "Ask the registry's owner to check its storage, or give the item a new version."
            raise RegistryError("manifest_damaged", why, hint)
        self._put_manifest(repository, one.tag, one.manifest)
        return digest

    def _has(self, repository: str, path: str, what: str, data: bytes) -> bool:
        """Tell whether a HEAD request finds these bytes; a server that was killed may hold half of them, or fail at them."""
        try:
            answer = self._ask("HEAD", repository, path, what, headers={"Accept": _ACCEPT}, answers=None)
        except PassingError:
            return False
        return answer.status == 200 and answer.headers.get("content-length", str(len(data))) == str(len(data))

    def _put_manifest(self, repository: str, name: str, data: bytes) -> None:
        headers = {"Content-Type": MEDIA_TYPE}
        answer = self._ask("PUT", repository, f"manifests/{name}", "upload", headers=headers, body=data, answers=(201,))
        stated = answer.headers.get("docker-content-digest", "")
        if stated:
            check_digest(data, stated, "manifest")

    def _push_blob(self, repository: str, digest: str, data: bytes) -> None:
        """Send a blob that the server has not."""
        if self._has(repository, f"blobs/{digest}", "blob", data):
            return
        upload = self._ask("POST", repository, "blobs/uploads/", "upload", answers=(202,))
        location = upload.headers.get("location", "")
        if not location:
            raise unexpected_status(self._host.host, upload, "upload")
        # The server names where to send to: `send` judges it, and sends credentials to the server's own origin only.
        where = location if "://" in location else f"/{location.removeprefix('/')}"
        path = f"{where}{'&' if '?' in location else '?'}digest={digest}"
        headers = {"Content-Type": "application/octet-stream"}
        self._ask("PUT", repository, path, "upload", headers=headers, body=data, answers=(201,))

    def _ask(self, method: str, repository: str, path: str, what: str, **more: Any) -> HttpAnswer:
        """Send a request about a repository: to a path below it, or to where the server led; `more` as of `RegistryRequest`."""
        name = f"{self._prefix}{repository}"
        url = path if path.startswith("/") or "://" in path else f"/v2/{name}/{path}"
        scope = f"repository:{name}:{'pull' if method == 'GET' else 'pull,push'}"
        return self._host.send(RegistryRequest(method, url, scope, what, **more))
