"""The pages of `rye review`, served in this process for a test, and a client that opened them as a browser does."""

from __future__ import annotations

import contextlib
import re
import threading

import httpx

from rye import local_http
from rye.review import site
from support.waiting import until


class Served:
    """Pages that are served: their `review`, their `origin`, and what was `told` at the terminal."""

    def __init__(self, review, port, told):
        self.review, self.port, self.told = review, port, told
        self.origin = f"http://127.0.0.1:{port}"
        self.base = f"{self.origin}{review.app.path}"

    @contextlib.contextmanager
    def client(self):
        """A client with the cookie that the address gave it; paths are relative to the pages' own."""
        with httpx.Client(base_url=f"{self.base}/", follow_redirects=True, timeout=120) as one:
            assert one.get(self.review.app.address).status_code == 200
            yield one

    def post(self, client, path, **fields):
        """Send a form as one of the pages would."""
        data = {"token": self.review.app.form_token, **fields}
        return client.post(path, data=data, headers={"origin": self.origin})


@contextlib.contextmanager
def serving(project):
    """Serve the pages of a project."""
    listening = local_http.listen(local_http.Address(site.HOST, 0))
    told = []
    review = site.Site(str(project), listening.getsockname()[1], told.append)
    server = review.server()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    until(lambda: server.started)
    try:
        yield Served(review, listening.getsockname()[1], told)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def calls_in(html):
    """Return the IDs of the calls that a list shows, newest first."""
    return re.findall(r'<a data-item id="c-([0-9a-zA-Z-]+)"', html)
