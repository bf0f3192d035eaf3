"""`rye review`: serve the pages on this machine, to the user alone, until the process is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rye import local_http
from rye.review.guard import PageGuard
from rye.review.site import Site

if TYPE_CHECKING:
    from uvicorn import Server

HOST: Final = "127.0.0.1"

_MOST_CONNECTIONS: Final = 256


class Review:
    """The pages of one project at one port. `app` is an ASGI application; `address` opens the pages in a browser, once."""

    def __init__(self, root: str, port: int, tell: Callable[[str], None]) -> None:
        """Show the project at `root`; `tell` shows a text to the person at the terminal."""
        self.site = Site(root, tell)
        self.app = PageGuard(self.site.app(), HOST, port, lambda address: tell(f"Opened. To open it elsewhere, too: {address}"))
        self.site.hold(self.app.path, self.app.form_token)

    @property
    def address(self) -> str:
        """The address with the code that opens the pages."""
        return self.app.address

    def server(self) -> Server:
        """Return the web server, bounded in connections and in the time that a request's header may take."""
        made: Server = local_http.web_server(
            self.app, _MOST_CONNECTIONS, log_level="error", date_header=False, timeout_keep_alive=30
        )
        return made


def serve(root: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve until the process is stopped; `tell` gets the address first, and then what a person has to know.

    Raises:
        UsageError: `cannot_listen`.
    """
    with local_http.listen(local_http.Address(HOST, port)) as listening:
        review = Review(root, listening.getsockname()[1], tell)
        tell(f"Open {review.address}\nThe address works once. Ctrl-C ends the server.")
        review.server().run(sockets=[listening])
