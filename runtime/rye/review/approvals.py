"""Approving a key on the page: by a person at the terminal of `rye review`, as `rye trust approve` wants it.

A click alone is not enough: a browser can be driven by a program, also by a model's. The page shows what the key would admit;
the terminal then shows a code for exactly that, which the person types on the page.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rye.call.safe_text import plain
from rye.errors import RyeError
from rye.items import proposed_keys
from rye.items.proposed_keys import Admitted
from rye.trust.decisions import Root
from rye.trust.verify import TrustedKey

_SECONDS: Final = 300.0
_TRIES: Final = 3


class Waiting(NamedTuple):
    """A key that waits for the user.

    Attributes:
        key: the key.
        rows: what it would admit.
        seen: a digest of all that, for the form.
        asked: whether a code is shown at the terminal now.
    """

    key: TrustedKey
    rows: Sequence[Admitted]
    seen: str
    asked: bool


class _Asked(NamedTuple):
    seen: str
    code: str
    until: float
    left: int


class Approvals:
    """The keys of one project that wait, and the codes that were shown for them. Any thread may ask."""

    def __init__(self, root: str, tell: Callable[[str], None]) -> None:
        """Approve keys for the folder that is at `root` now; `tell` shows a text at the terminal."""
        self._root = Root.of(root)
        self._tell = tell
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}

    def waiting(self) -> list[Waiting]:
        """Return the keys that wait, with what they would admit now."""
        store = proposed_keys.store_of(self._root.path)
        found = [key for key in proposed_keys.waiting(store, self._root) if key.public.digest not in store.revoked]
        return [self._of(key) for key in found]

    def _of(self, key: TrustedKey) -> Waiting:
        rows = proposed_keys.admitted(key, self._root)
        seen = proposed_keys.fingerprint(key, self._root, rows)
        asked = self._asked.get(key.public.digest)
        return Waiting(key, rows, seen, asked is not None and asked.seen == seen and time.monotonic() < asked.until)

    def ask(self, digest: str, seen: str) -> str:
        """Show a code for a key at the terminal; return what to tell the user. Errors as `confirm`."""
        with self._lock:
            one = self._found(digest, seen)
            code = f"{secrets.randbelow(10**6):06}"
            self._asked[digest] = _Asked(seen, code, time.monotonic() + _SECONDS, _TRIES)
        # Names of a signer who is not trusted yet: they must not begin a line of their own.
        items = "".join(f"\n  {plain(row.item_id)}  {plain(row.effects)}" for row in one.rows) or "\n  nothing yet"
        self._tell(
            f"A page asks to let the key {one.key.public.fingerprint} (full digest {digest}) count for the project "
            f"{plain(self._root.path)}. It would admit:{items}\nIf you want that, type on the page: {code}"
        )
        return "A code is shown at the terminal where rye review runs. Type it below."

    def confirm(self, digest: str, seen: str, code: str) -> str:
        """Approve a key with the code that was shown for it; return what to tell the user.

        Raises:
            RyeError: `unknown_key`; `changed_proposal`, when it admits something else by now; `wrong_code`.
        """
        with self._lock:
            one = self._found(digest, seen)
            asked = self._asked.get(digest)
            if asked is None or asked.seen != seen or time.monotonic() >= asked.until:
                self._asked.pop(digest, None)
                raise RyeError("wrong_code", "No code is shown for this key now.", "Ask for one; it holds for five minutes.")
            given = "".join(code.split()).encode("utf-8", "replace")
            if not hmac.compare_digest(given, asked.code.encode()):
                left = asked.left - 1
                if left:
                    self._asked[digest] = asked._replace(left=left)
                else:
                    del self._asked[digest]
                raise RyeError("wrong_code", "This is not the code that the terminal shows.", f"{left} tries are left.")
            del self._asked[digest]
            proposed_keys.approve(one.key, self._root, list(one.rows))
        self._tell(f"Approved {one.key.public.fingerprint} for {plain(self._root.path)}.")
        return f"Approved {one.key.public.fingerprint} for this project."

    def _found(self, digest: str, seen: str) -> Waiting:
        one = next((one for one in self.waiting() if one.key.public.digest == digest), None)
        if one is None:
            raise RyeError("unknown_key", "This key does not wait for you.", "Look at the page again.")
        if one.seen != seen:
            raise RyeError("changed_proposal", "What this key would admit has changed since you looked.", "Look at it again.")
        return one
