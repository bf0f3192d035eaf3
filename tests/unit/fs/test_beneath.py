"""Opens beneath a root: the kernel's way and the walk agree with each other and with `openat2(2)` itself."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import socket
from pathlib import Path

import pytest

from rye.fs import beneath
from support.opening import BOTH_WAYS, kernel_can, open_by

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
LONG = b"n" * 255
_BENEATH, _NO_MAGICLINKS = 0x08, 0x02


@pytest.fixture(params=BOTH_WAYS)
def way(request, monkeypatch):
    """Both ways of opening, one after the other."""
    open_by(monkeypatch, request.param)
    return request.param


@pytest.fixture
def root(tmp_path):
    top = make_tree(tmp_path)
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def make_tree(tmp_path: Path) -> Path:
    """A project with every shape a path can take, and a secret beside it."""
    top = tmp_path / "project"
    (top / "a/b/c").mkdir(parents=True)
    (top / "sub").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (tmp_path / "project-evil").mkdir()
    (tmp_path / "project-evil/secret").write_text("secret")
    for name in ("f", "a/f", "a/b/f", "sub/file with space", "-rf", "new\nline", "esc\x1b[31m"):
        (top / name).write_text(f"content of {name!r}")
    (Path(os.fsdecode(os.fsencode(top) + b"/\xff\xfe"))).write_text("not UTF-8")
    (Path(os.fsdecode(os.fsencode(top) + b"/" + LONG))).write_text("long")
    links = {
        "in": "a/b", "a/b/up": "../..", "infile": "a/b/f", "a/rel": "../f", "out": "../outside", "outfile": "../outside/secret",
        "abs": "/etc", "absfile": str(tmp_path / "outside/secret"), "absin": str(top / "a"), "absinfile": str(top / "f"),
        "self": "self", "ping": "pong", "pong": "ping", "dangle": "sub/new", "dangleout": "../new", "danglepath": "nowhere/x",
        "fd0": "/proc/self/fd/0", "dot": ".", "dotdot": "..", "a/b/deepout": "../../../outside", "through": "in/f",
        "viaout": "out/../project/f", "tofile": "f/", "todir": "a/", "null": "/dev/null", "a/b/sibling": "../../sub/../f",
    }  # fmt: skip
    for name, target in links.items():
        (top / name).symlink_to(target)
    (top / "chain0").write_text("end of the chain")
    for at in range(1, 43):
        (top / f"chain{at}").symlink_to(f"chain{at - 1}")
    os.mkfifo(top / "fifo")
    (top / "tofifo").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(top)
        listening.bind("sock")
        os.chdir(here)
    return top


# What an open for reading says, True (opened) or the errno's name, of which paths; those with odd bytes are below.
WORDS = {
    True: b"f ./f a//b///f a/./b/./f a/b/../f a/b/../../f a/../a/../a/f . a a/ a/b/c/.. -rf fifo tofifo in in/f in/../f in/../../f "
    b"in/up/f in/up/in/up/f infile a/rel dot/f dot/dot/dot/f through todir/f todir in/sibling chain40",
    "EXDEV": b".. ../ ../outside/secret a/../../outside/secret a/b/../../.. ../project/f ../project-evil/secret a/b/c/../../../../f "
    b"in/../../../f in/up/../f out out/secret outfile in/deepout/secret dotdot/project/f viaout abs abs/passwd absfile absin absin/f "
    b"absinfile fd0 null dangleout",
    "ENOENT": b"dangle danglepath missing missing/../f dangle/x",
    "ENOTDIR": b"f/ f/. f/.. f/x infile/ tofile",
    "ELOOP": b"self self/x ping chain41 chain42",
    "ENXIO": b"sock",
}
SHAPES = {path: wanted for wanted, paths in WORDS.items() for path in paths.split()}
SHAPES |= dict.fromkeys((b"", b"new\nline", b"\xff\xfe", LONG, b"sub/file with space", b"./" * 2047 + b"f"), True)
SHAPES |= dict.fromkeys((LONG + b"n", b"a/" + LONG + b"n/x", b"./" * 2048 + b"f", b"a/../" * 1000), "ENAMETOOLONG")


def verdict_of(call):
    """Return ((device, inode), physical parts or None), or the errno's name; the descriptor is closed."""
    try:
        got = call()
    except OSError as err:
        return errno.errorcode[err.errno]
    fd, parts = got if isinstance(got, tuple) else (got, None)
    info = os.fstat(fd)
    os.close(fd)
    return (info.st_dev, info.st_ino), parts


def place_of(verdict):
    return verdict if isinstance(verdict, str) else verdict[0]


def kernel(root_fd: int, path: bytes, flags: int) -> int:
    """The oracle: openat2 resolving everything, links too, by itself."""

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    how = How(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    libc = ctypes.CDLL(None, use_errno=True)
    # EAGAIN: a rename anywhere on the machine fell between; ask again.
    while (fd := libc.syscall(437, root_fd, path or b".", ctypes.byref(how), ctypes.sizeof(how))) < 0:
        if ctypes.get_errno() != errno.EAGAIN:
            raise OSError(ctypes.get_errno(), "openat2")
    return fd


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: repr(path)[1:60])
def test_every_shape_has_its_verdict_both_ways(root, way, path):
    got = verdict_of(lambda: beneath.open_beneath(root, path.split(b"/"), READ))
    if SHAPES[path] is not True:
        assert got == SHAPES[path]
        return
    place, parts = got
    naive = os.stat(path or b".", dir_fd=root)
    assert place == (naive.st_dev, naive.st_ino)
    # The physical path leads to the same place through no link at all.
    here = os.stat(b"/".join(parts) or b".", dir_fd=root, follow_symlinks=False)
    assert place == (here.st_dev, here.st_ino)
    assert not {b"", b".", b".."} & set(parts)


@pytest.mark.skipif(not kernel_can(), reason="this kernel has no openat2")
def test_the_table_itself_is_what_the_kernel_says_and_naive_opens_escape(root):
    for path, wanted in SHAPES.items():
        got = verdict_of(lambda path=path: kernel(root, path, READ))
        assert (got if isinstance(got, str) else True) == wanted, path
    refused = [path for path, wanted in SHAPES.items() if wanted == "EXDEV"]
    assert sum(os.path.exists(b"/proc/self/fd/%d/%s" % (root, path)) for path in refused) > 15


def random_path(rng: random.Random) -> bytes:
    names = (
        b"a b c f in up out .. .. . dot dotdot infile rel sub abs absin self dangle deepout sibling through todir chain30 chain9 "
        b"missing fifo project outside secret \xff\xfe viaout"
    ).split()
    return b"/".join(rng.choice([*names, b""]) for _ in range(rng.randint(1, 9))).lstrip(b"/")


@pytest.mark.skipif(not kernel_can(), reason="this kernel has no openat2")
@pytest.mark.parametrize("flags", [READ, os.O_PATH, beneath.DIRECTORY], ids=["read", "path", "directory"])
def test_ten_thousand_random_paths_get_the_kernels_verdict_both_ways(root, monkeypatch, flags):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    opened = refused = 0
    for _ in range(10_000 if flags == READ else 3_000):
        path = random_path(rng)
        wanted = verdict_of(lambda path=path: kernel(root, path, flags))
        answers = []
        for available in (True, False):
            with monkeypatch.context() as patched:
                open_by(patched, available)
                answers.append(verdict_of(lambda path=path: beneath.open_beneath(root, path.split(b"/"), flags)))
        assert answers[0] == answers[1], path
        for _ in range(100):
            # On a busy machine the kernel starts a walk anew and goes on counting its links: 30 become too many. A real
            # difference is there each time.
            if place_of(answers[0]) == place_of(wanted):
                break
            wanted = verdict_of(lambda path=path: kernel(root, path, flags))
        assert place_of(answers[0]) == place_of(wanted), path
        opened += not isinstance(wanted, str)
        refused += wanted == "EXDEV"
    assert opened > 20
    assert refused > 100


@pytest.fixture
def named_root(root, tmp_path):
    """The root, known by the path it was opened at, so that absolute links to it are followed."""
    beneath.name_root(root, str(tmp_path / "project"))
    yield root
    beneath.forget_root(root)


def absolute_links(top: Path) -> dict[str, tuple[bytes, ...] | str]:
    """Make links with absolute targets; what each leads to below the root, or the errno's name."""
    also = top.parent / "also"
    also.symlink_to(top)
    below = {
        f"{top}/f": (b"f",),
        f"{top}/in/f": (b"a", b"b", b"f"),
        f"{top}/a/b/../rel": (b"f",),
        f"//{str(top)[1:].replace('/', '//./')}//a/.//f": (b"a", b"f"),
        f"{top}": (),
        f"{top}/": (),
        f"{top}/i1": (b"a", b"b", b"f"),
        f"{top}/f/": "ENOTDIR",
        f"{top}/i8": "ELOOP",
    }
    # The last one is another spelling than the one that the root was opened at: nobody looks where it leads.
    out = ("/..", "/../outside/secret", "/a/../../outside/secret", "-evil/secret", "/../project/f", "/out/secret", "/absfile")
    away = (f"{top.parent}", "/", f"/proc/self/root{top}/f", f"{top}/../{top.name}/../outside/secret", f"{also}/f")
    targets = {f"i{at}": row for at, row in enumerate(below.items())} | {"a/b/dangles": (f"{top}/dangle", "ENOENT")}
    targets |= {f"o{at}": (target, "EXDEV") for at, target in enumerate([*(f"{top}{one}" for one in out), *away])}
    for name, (target, _) in targets.items():
        (top / name).symlink_to(target)
    return {name: wanted for name, (_, wanted) in targets.items()}


def test_absolute_links_that_begin_with_the_roots_own_path_are_followed_below_it(named_root, way, tmp_path):
    for name, wanted in absolute_links(tmp_path / "project").items():
        got = verdict_of(lambda name=name: beneath.open_beneath(named_root, name.encode().split(b"/"), READ))
        if isinstance(wanted, str):
            assert got == wanted, name
            continue
        place, parts = got
        naive = os.stat(name, dir_fd=named_root)
        assert (place, parts) == ((naive.st_dev, naive.st_ino), wanted), name
    fd, parts = beneath.open_parent(named_root, (b"a", b"b", b"dangles"))
    os.close(fd)
    assert parts == (b"sub", b"new")
    assert verdict_of(lambda: beneath.open_parent(named_root, (b"o1",))) == "EXDEV"


def test_a_root_opened_through_a_link_is_known_by_both_of_its_paths(root, way, tmp_path):
    top, also = tmp_path / "project", tmp_path / "also"
    also.symlink_to(top)
    (top / "one").symlink_to(top / "f")
    (top / "two").symlink_to(also / "f")
    beneath.name_root(root, str(also))
    try:
        for name in (b"one", b"two"):
            assert verdict_of(lambda name=name: beneath.open_beneath(root, (name,), READ))[1] == (b"f",)
    finally:
        beneath.forget_root(root)


def test_an_absolute_link_means_the_folder_that_stands_at_the_roots_path_now(named_root, way, tmp_path):
    (tmp_path / "project").rename(tmp_path / "moved")
    make_tree(tmp_path / "new")
    (tmp_path / "new/project").rename(tmp_path / "project")
    for name in (b"absin", b"absinfile"):
        assert verdict_of(lambda name=name: beneath.open_beneath(named_root, (name,), READ)) == "EXDEV"


# Where a file would be made, or why not.
PLACES = {
    "f": b"f a/rel in/sibling", "new": b"new", "a/b/new": b"in/new", "a/b/f": b"infile through", "sub/new": b"dangle",
    "chain0": b"chain40", "EXDEV": b"dangleout out/new outfile absfile absinfile fd0 ../new",
    "ENOENT": b"danglepath missing/new", "ENOTDIR": b"f/new", "ELOOP": b"self chain41", "EISDIR": b". a/ a/.. dot dotdot todir",
}  # fmt: skip
PARENTS = {
    path: wanted if wanted.isupper() else tuple(wanted.encode().split(b"/"))
    for wanted, paths in PLACES.items()
    for path in paths.split()
} | {b"": "EISDIR"}


@pytest.mark.parametrize(("path", "wanted"), PARENTS.items(), ids=lambda value: repr(value)[:40])
def test_the_parent_of_a_file_that_may_not_exist(root, way, path, wanted, tmp_path):
    got = verdict_of(lambda: beneath.open_parent(root, path.split(b"/")))
    if isinstance(wanted, str):
        assert got == wanted
        return
    place, parts = got
    folder = os.stat(b"/".join(parts[:-1]) or b".", dir_fd=root, follow_symlinks=False)
    assert place == (folder.st_dev, folder.st_ino)
    assert parts == wanted
    assert not (tmp_path / "new").exists()


def test_a_naive_create_through_a_dangling_link_lands_outside(root, tmp_path):
    os.close(os.open("dangleout", os.O_CREAT | os.O_WRONLY, dir_fd=root))
    assert (tmp_path / "new").exists()


@pytest.mark.skipif(not Path("/proc/self/root").exists(), reason="no /proc here")
@pytest.mark.parametrize("path", ["proc/self/root/etc/passwd", "proc/self/fd/0", "proc/self/cwd/x", "proc/thread-self/root"])
def test_magic_links_are_never_followed(way, path, tmp_path):
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    before = sorted(os.listdir("/proc/self/fd"))
    try:
        got = verdict_of(lambda: beneath.open_beneath(top, os.fsencode(path).split(b"/"), READ))
        # A pipe's or terminal's link text names nothing below.
        assert got in ("EXDEV", "ELOOP", "ENOENT", "EACCES")
        assert sorted(os.listdir("/proc/self/fd")) == before
    finally:
        os.close(top)


def test_no_descriptor_leaks_whatever_the_verdict(root, way):
    before = len(os.listdir("/proc/self/fd"))
    for path in SHAPES:
        verdict_of(lambda path=path: beneath.open_beneath(root, path.split(b"/"), READ))
        verdict_of(lambda path=path: beneath.open_parent(root, path.split(b"/")))
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_the_system_call_the_walk_takes_over(root, monkeypatch):
    # Also where a filter refuses it, and when renames never pause.
    for code in (errno.ENOSYS, errno.EPERM, errno.EAGAIN):
        monkeypatch.setattr(beneath, "_openat2", lambda *_, code=code: (_ for _ in ()).throw(OSError(code, "no")))
        fd, parts = beneath.open_beneath(root, [b"in", b"f"], READ)
        os.close(fd)
        assert parts == (b"a", b"b", b"f")
