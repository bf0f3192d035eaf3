"""Random shell scripts that change a project's files in every way that a shell has, over a few names, so that their steps meet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

WORDS = ["alpha", "beta", "gamma", "delta", "x y", "ü", "-n"]
NAMES = [
    "a.txt", "b.txt", "src/c.py", "src/d e.py", "src/deep/f", "g", "src/link", "new/h", "new/dir/i", "bin.dat", "A.txt", "src/C.py",
    "-dash", "new\nline", "tab\t", "quo\"te", "back\\slash", "*", "caf\u00e9", "cafe\u0301", " space ", "\udcff\udcfe", "e" * 240,
    ".hidden", "dot.", "\u202egnp.txt", "\U0001f600", "x.rye-set-aside", ".rye-0123456789abcdef.tmp", "src/.hidden/j", "%s", "~",
]  # fmt: skip
"""Names that scripts use, so that their steps meet: cases, controls, bytes that are no UTF-8, long ones, some like our own."""

_PYTHON = {
    "mapped": "f = open(one, 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:1] = b'M'; m[-1:] = b'E'",
    "mapped, grown": "f = open(one, 'a+b'); f.truncate(9000); m = mmap.mmap(f.fileno(), 0); m[8000:8003] = b'map'; m.flush()",
    "mapped, then renamed": "f = open(one, 'r+b'); m = mmap.mmap(f.fileno(), 0); os.rename(one, two); m[:1] = b'R'",
    "exchanged": "ctypes.CDLL(None).renameat2(-100, one, -100, two, 2)",
    "renamed where nothing is": "ctypes.CDLL(None).renameat2(-100, one, -100, two, 1)",
    "replaced": "open(one + b'~', 'wb').write(b'whole\\n' * 99); os.replace(one + b'~', one)",
    "written, synced": "f = open(one, 'ab'); f.write(b'z'); f.flush(); os.fsync(f.fileno()); f.write(b'y')",
    "without a name": (
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640); os.write(f, b'unnamed'); "
        "os.link(f'/proc/self/fd/{f}', one, follow_symlinks=True)"
    ),
    "never named": "f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640); os.write(f, b'unnamed')",
    "attribute": "os.setxattr(one, 'user.note', b'1')",
    "times": "os.utime(one, ns=(0, 1)); open(one, 'r+b').write(b'q'); os.utime(one, ns=(0, 1))",
    "in the middle": "f = os.open(one, os.O_RDWR); os.pwrite(f, b'\\x00\\xff', 3); os.ftruncate(f, os.fstat(f).st_size)",
    "vectors": "f = os.open(one, os.O_RDWR); os.pwritev(f, [b'ab', b'cd'], 1)",
    "sent": "f = os.open(one, os.O_RDONLY); g = os.open(two, os.O_WRONLY | os.O_CREAT); os.sendfile(g, f, 0, 1 << 20)",
    "copied": "f = os.open(one, os.O_RDONLY); g = os.open(two, os.O_WRONLY | os.O_CREAT); os.copy_file_range(f, g, 9, 0, 4)",
    "threads": (
        "ts = [threading.Thread(target=lambda n: open(two, 'ab').write(b'%d\\n' % n), args=(n,)) for n in range(8)]; "
        "[t.start() for t in ts]; [t.join() for t in ts]"
    ),
    "same size and time": (
        "s = os.stat(one); f = os.open(one, os.O_RDWR); os.pwrite(f, b'S', 0); os.close(f); "
        "os.utime(one, ns=(s.st_atime_ns, s.st_mtime_ns))"
    ),
    "same size and time, whole": (
        "s = os.stat(one); f = open(one, 'r+b'); old = f.read(); f.seek(0); f.write(old[::-1]); f.close(); "
        "os.utime(one, ns=(s.st_atime_ns, s.st_mtime_ns))"
    ),
    "same size and time, mapped": (
        "s = os.stat(one); f = open(one, 'r+b'); m = mmap.mmap(f.fileno(), 0); m[-1:] = b'N'; m.flush(); m.close(); "
        "os.utime(one, ns=(s.st_atime_ns, s.st_mtime_ns))"
    ),
    "same size and time, many times": (
        "s = os.stat(one); f = os.open(one, os.O_RDWR); "
        "[(os.pwrite(f, b'%d' % (n % 10), 0), os.utime(f, ns=(s.st_atime_ns, s.st_mtime_ns))) for n in range(200)]"
    ),
    "same size and time, another file": (
        "s = os.stat(one); old = open(one, 'rb').read(); os.unlink(one); "
        "open(one, 'wb').write(old[:-1] + b'T'); os.utime(one, ns=(s.st_atime_ns, s.st_mtime_ns)); os.chmod(one, s.st_mode)"
    ),
    "temporary, then replaced": (
        "f = tempfile.NamedTemporaryFile(dir='.', delete=False); f.write(b'tmp\\n'); f.close(); os.replace(f.name, one)"
    ),
    "temporary, left": "tempfile.mkstemp(dir='.', prefix='left'); tempfile.mkdtemp(dir='.', prefix='left')",
    "folders exchanged": (
        "a, b = (os.path.dirname(one) or b'src'), (os.path.dirname(two) or b'new'); "
        "ctypes.CDLL(None).renameat2(-100, a, -100, b, 2)"
    ),
    "database, closed": (
        "d = sqlite3.connect('data.db'); d.execute('create table if not exists t (n)'); "
        "d.execute('insert into t values (1)'); d.commit(); d.close()"
    ),
    "database, left with its log": (
        "d = sqlite3.connect('data.db'); d.execute('pragma journal_mode=wal'); d.execute('create table if not exists t (n)'); "
        "d.executemany('insert into t values (?)', [(n,) for n in range(900)]); d.commit(); os._exit(0)"
    ),
    "database, killed in a change": (
        "d = sqlite3.connect('data.db', isolation_level=None); d.execute('create table if not exists t (n)'); "
        "d.execute('pragma cache_size=1'); d.execute('begin'); "
        "d.executemany('insert into t values (?)', [(b'x' * 900,) for n in range(90)]); os.kill(os.getpid(), 9)"
    ),
    "database, shrunk": "d = sqlite3.connect('data.db'); d.execute('delete from t'); d.commit(); d.execute('vacuum'); d.close()",
    "shelf": "import dbm.dumb; d = dbm.dumb.open('shelf'); d[one] = two; d.close()",
    "zipped": "import shutil; shutil.make_archive('all', 'zip', 'src'); shutil.unpack_archive('all.zip', 'again')",
    "tree copied": "import shutil; shutil.copytree(b'src', b'tree', dirs_exist_ok=True, symlinks=True); shutil.rmtree('new', True)",
    "processes": (
        "from concurrent.futures import ThreadPoolExecutor as P; "
        "list(P(6).map(lambda n: (open(b'w%d' % n, 'wb').write(two), os.replace(b'w%d' % n, one)), range(30)))"
    ),
    "all bytes": "open(one, 'ab').write(bytes(range(256)))",
    "folders by descriptor": (
        "d = os.open(os.path.dirname(one) or b'.', os.O_RDONLY); os.mkdir('made', 0o711, dir_fd=d); "
        "os.close(os.open('made/in', os.O_CREAT | os.O_WRONLY, 0o604, dir_fd=d))"
    ),
}


def quoted(name: str) -> str:
    """Return a name as bash reads it, whatever bytes it has; nothing else of a script has such bytes."""
    raw = os.fsencode(name)
    return "$'" + "".join(chr(one) if 32 <= one < 127 and one not in b"\\'" else f"\\x{one:02x}" for one in raw) + "'"


def script(random_: random.Random, more: Sequence[str] = ()) -> str:
    """Return a random script over a few names, so that its steps meet; `more` are files of the project."""
    return "\n".join(_step(random_, more) for _ in range(random_.randint(1, 6)))


def _step(random_: random.Random, more: Sequence[str]) -> str:
    def name() -> str:
        return f"./{quoted(random_.choice(more) if more and random_.random() < 0.5 else random_.choice(NAMES))}"

    one, two, three, word, third = name(), name(), name(), random_.choice(WORDS), random_.choice(list(more) or NAMES)
    above = f"./{quoted(os.path.dirname(third) or 'src')}"
    kind = random_.choices(
        (_written, _moved, _modes, _folders, _by_git, _together, _by_python, _odd, _by_tools, _with_times),
        (6, 6, 3, 4, 6, 2, 5, 4, 5, 4),
    )[0]
    return random_.choice(kind(random_, one, two, three, above, word))


def _written(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    return [
        f"mkdir -p \"$(dirname {one})\"; echo '{word}' > {one}",
        f"echo '{word}' >> {one}",
        f"sed -i 's/a/{word}/' {one}",
        f"sed -i.bak 's/e/{word}/g' {one} {two}",
        f"sed -i '2d' {one}; sed -i '1i {word}' {two}",
        f"perl -pi -e 's/e/E/g' {one}",
        f"perl -pi.orig -e 's/^/# /' {one} {two}",
        f"awk '{{print NR, $0}}' {one} > {two}.tmp && mv {two}.tmp {two}",
        f"printf 'x\\n' | tee -a {one} > {two}",
        f"printf 'x\\n' | tee {one} {two} {three} > /dev/null",
        f"sort -o {one} {two}",
        f"cat {one} {two} >> {three}",
        f"diff -u {one} {two} | patch -s {one}",
        f"head -c {random_.randrange(5000)} /dev/urandom > {one}",
        f"head -c {random_.randrange(3 << 20)} /dev/urandom > {one}",
        f"printf 'a\\r\\nb' > {one}",
        f": > {one}",
        f"gzip -f {one}",
        f"split -l 1 {one} part.",
        f"truncate -s {random_.randrange(200)} {one}",
        f"truncate -s {random_.randrange(9 << 20)} {one}",
        f"dd if=/dev/urandom of={one} bs=7 seek={random_.randrange(40)} count=3 conv=notrunc status=none",
        f"echo end | dd of={one} bs=1M seek=3 conv=notrunc status=none",
        f"fallocate -l 100k {one}",
        f"fallocate -p -o 0 -l 4096 {one}",
        f"truncate -s 64k {one}; fallocate -z -o 4096 -l 8192 {one}; fallocate -c -o 0 -l 4096 {one}",
        f"touch {one}",
        f"touch -d '2001-01-01' {one}",
        f"cp -p {one} keep; echo '{word}' > {one}; touch -r keep {one}; rm -f keep",
        f"umask 077; echo private > {one}",
        f"shred -n 1 -u {one}",
        f"git ls-files -z | head -z -n 40 | xargs -0 sed -i 's/the/{word}/'",
    ]


def _moved(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    return [
        f"mv {one} {two}",
        f"mv -T {one} {two}",
        f"mv -f {one} {two}; mv -f {two} {three}",
        f"mv -b {one} {two}",
        f"mv {one} swap; mv {two} {one}; mv swap {two}",
        f"mv {one} tmp; mv tmp {one}",
        f"cp {one} tmp; mv tmp {one}",
        f"mv {above} moved; mkdir -p {above}",
        f"mv -t {above} {one} {two}",
        f"rm -rf {one}",
        f"rm -f {one} {two} {three}",
        f"rm -rf {one}; mkdir {one}; touch {one}/inner",
        f"rm -rf {one}; echo file > {one}",
        f"rm -rf {one}; mkdir -p {one}/{random_.choice(['er/er', 'x'])}; ln -s er {one}/link",
        f"rm -rf {one}; ln -s g {one}; rm -f {one}; mkfifo {one}; rm -f {one}",
        f"cp -a {above} copy",
        f"cp -r {one} {two}",
        f"cp -al {above} linked",
        f"cp --sparse=always {one} {two}",
        f"install -m 750 {one} {two}",
        f"install -D -m 640 {one} deep/er/{word.strip('-').replace(' ', '')}",
        f"ln -sf {one} {two}",
        f"ln -sfn {above} {one}",
        f"ln -s /nowhere/at/all {one}",
        f"ln -f {one} {two}",
        f"ln -f {one} {two}; echo '{word}' >> {two}; rm -f {one}",
        f"ln -f {one} other; echo '{word}' >> other; rm -f other",
        f"ln -f {one} {two}; ln -f {two} {three}; mv -f {two} {one}",
        f"ln -s . {above}/loop; ln -s ../.. {above}/up; ln -s two one; ln -s one two",
        f"ln -s {above} {one}; echo '{word}' > {one}/through",
        "mv A.txt a.TXT; mv src SRC; mv SRC src",
        f"exec 3>>{one}; rm -f {one}; echo gone >&3; echo back > {one}; echo again >&3",
        f"exec 3>>{one}; mv {one} {two}; echo moved >&3",
    ]


def _modes(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    return [
        f"chmod {random_.choice(['600', '755', '444', '640', '711', '1644', 'a+x', 'u+s', 'g+s', '+t', '6755'])} {one} {two}",
        f"chmod -R {random_.choice(['go-w', 'u+x', '700', 'a-w', 'g+s'])} {above}",
        f"chmod 555 {above}; echo '{word}' > {above}/inside; echo '{word}' >> {one}",
        f"mkdir -m 2775 shared; mkdir shared/below; echo '{word}' > shared/below/f",
        f"chmod a-w {one}; mv {one} {two}",
        f"mkdir -p closed; echo '{word}' > closed/f; chmod 500 closed",
        "chmod -R u+w .; rm -rf closed shared",
        f"chmod u+s {one}; echo '{word}' >> {one}",
    ]


def _folders(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    return [
        "rm -rf src/deep",
        f"rm -rf {above}",
        "mkdir -p src/deep/er && echo deep > src/deep/er/file",
        f"tar cf t.tar src && rm -rf src && mkdir {one} ; tar xf t.tar; rm -f t.tar",
        f"tar czf t.tgz {above} && rm -rf {above} && tar xzf t.tgz",
        f"tar cf - {above} | (mkdir -p unpacked; tar xf - -C unpacked)",
        f"git ls-files -z | head -z -n 20 | xargs -0 python3 -m zipfile -c z.zip; rm -rf {above}; python3 -m zipfile -e z.zip out",
        f"rmdir {one}",
        "mkdir -p empty/er; chmod 700 empty",
        "rmdir empty/er empty",
        f"find {above} -type f -newer .gitignore -delete",
        f"find {above} -name '*e*' -exec rm -rf {{}} +",
        f"find {above} -type f -exec touch {{}} +",
        f"find {above} -maxdepth 1 -type f -exec mv -t . {{}} +",
        "mkdir -p $(printf 'far/%.0s' {1..60}); echo down > $(printf 'far/%.0s' {1..60})f",
        "rm -rf far",
        "mkdir -p wide; cd wide; seq 120 | xargs touch; cd ..",
        "rm -rf wide",
        "mkdir -p node_modules/x; echo 1 > node_modules/x/y",
        f"mkdir -p package{random_.randrange(3)}/node_modules/x; echo 1 > package{random_.randrange(3)}/node_modules/x/y",
        "find . -maxdepth 1 -name '[a-m]*' -exec rm -rf {} +",
    ]


def _by_git(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    rebase = "git add -A; git commit -qm z; git rebase -q master || git rebase --abort; git checkout -q -f master"
    commit = "git add -A; git commit -qm"
    nested = f"nested{random_.randrange(3)}"
    mine = f"git -C {nested} -c user.name=t -c user.email=t@example.org"
    return [
        "git add -A; git commit -qm x",
        "git stash -u",
        "git stash pop",
        "git stash -a; git stash apply",
        "git checkout -q -B other; git checkout -q -f master",
        "git checkout -q -- .",
        f"git checkout -q HEAD~1 -- {one}",
        f"git restore --source=HEAD~1 {one} {two}",
        "git clean -fdq",
        "git clean -fdxq -e node_modules",
        "git reset -q --hard HEAD~1",
        f"git add -A; git commit -qm y; git checkout -q -B side HEAD~1; echo '{word}' >> {one}; {rebase}",
        "git checkout -q -B side HEAD~1; git merge -q master; git checkout -q -f master",
        f"{commit} y; git checkout -q -B side HEAD~1; echo '{word}' > {one}; {commit} w; git merge -q master; git checkout -qf master",
        "git add -A; git commit -qm s1; git rebase -q HEAD~1 --exec 'echo ran >> executed'; git rebase --abort",
        "git checkout -q -B side HEAD~1; git cherry-pick master; git checkout -q -f master",
        "git revert --no-edit HEAD || git revert --abort",
        f"git mv {one} {two}",
        f"git rm -qrf {one}",
        "git show HEAD | git apply -R",
        "git -c core.autocrlf=true checkout -q -f HEAD~1 -- . ; git checkout -q -f HEAD -- .",
        "git archive HEAD | tar x -C . ; git gc -q",
        f"git init -q {nested}; echo '{word}' >> {nested}/f; {mine} add -A; {mine} commit -qm n",
        f"{mine} reset -q --hard HEAD~1; {mine} checkout -q -b other; echo '{word}' > {nested}/g",
        "git worktree add -q tree HEAD~1; echo more > tree/more",
        "git worktree remove -f ./tree",
        f"git -c protocol.file.allow=always submodule --quiet add $PWD/{nested} sub",
        "git submodule --quiet deinit -f --all; git submodule --quiet update --init",
        (
            f"{commit} b1; echo '{word}' > {one}; {commit} b2; git bisect start HEAD HEAD~2; "
            f"git bisect run sh -c 'echo step >> {two}.log; test ! -e g'; git bisect reset"
        ),
        "git format-patch -q -1 --stdout > m.patch; git reset -q --hard HEAD~1; git am -q m.patch || git am --abort; rm -f m.patch",
        f"git diff HEAD > d.patch; git checkout -qf HEAD -- .; echo '{word}' >> {one}; git apply --reject d.patch; rm -f d.patch",
        "git diff HEAD~1 HEAD > d.patch; git apply -R --3way d.patch; git reset -q",
        f"git add -A; git commit -q --amend -m again; git checkout -q HEAD@{{1}} -- {above}",
        "git read-tree -u --reset HEAD~1; git checkout-index -f -a",
        "git sparse-checkout set --no-cone src; git sparse-checkout disable",
        "git -c core.symlinks=false checkout -q -f HEAD -- .",
        "rm -rf src; git -c core.fileMode=false checkout -q -f HEAD -- .",
        (
            f"echo '*.txt filter=up' > .gitattributes; echo '{word}' >> a.txt; "
            "git -c filter.up.clean='tr a-z A-Z' -c filter.up.smudge='tr A-Z a-z' add -A; git commit -qm filtered; rm -f a.txt; "
            "git -c filter.up.clean='tr a-z A-Z' -c filter.up.smudge='tr A-Z a-z' checkout -q -f HEAD -- ."
        ),
        "echo '* text eol=crlf' > .gitattributes; git add -A; git commit -qm eol; git rm -q --cached -r .; git reset -q --hard",
        "git worktree add -q inner HEAD~1; git worktree move inner moved_tree; git worktree remove -f moved_tree; git worktree prune",
        "git clone -q . cloned; rm -rf cloned/.git",
        f"git stash -q -- {one}; git stash pop -q --index",
        "git checkout -q --orphan bare; git rm -qrf .; git checkout -q -f master",
        "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~1; git rebase --abort",
    ]


def _together(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    return [
        f"for i in 1 2 3; do echo $i >> {one} & done; wait",
        f"seq 20 | xargs -P 4 -I N sh -c 'echo N > many.N; echo N >> {'g'}'",
        "rm -f many.*",
        f"for i in 1 2 3 4; do (echo $i > {two}.$i; mv {two}.$i {two}) & done; wait",
        f"(while :; do echo x >> {one}; done) & sleep 0.03; mv {one} {two}; kill $!",
        f"for i in 1 2 3 4 5 6; do (cp {one} par.$i; rm -f par.$((i - 1)); echo $i >> {two}) & done; wait",
        f"( sleep 0.05; echo late >> {one} ) & wait",
        f"( sleep 0.02; echo later >> {one} ) &",
        f"setsid sh -c 'for i in 1 2 3 4 5; do echo $i >> detached; done' & echo '{word}' >> {one}",
        f"(git add -A; git commit -qm p) & echo '{word}' >> {one}; rm -f {two}; wait",
    ]


def _by_python(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    head = "import ctypes, mmap, os, sqlite3, sys, tempfile, threading; one, two = map(os.fsencode, sys.argv[1:]); "
    return [f'python3 -c "{head}{body}" {one} {two}' for body in _PYTHON.values()]


def _odd(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    return [
        "mkfifo pipe",
        "rm -f pipe",
        "mkfifo -m 622 pipe; echo through > pipe & cat pipe > got; wait",
        f"head -c {random_.randrange(9 << 20, 13 << 20)} /dev/urandom > large; cp large {one}; rm -f large",
        f"seq {random_.randrange(400_000)} > {one}",
        f"truncate -s 12M {one}; echo '{word}' >> {one}",
        f"ulimit -f 8; yes > {one}",
        f"timeout -s KILL 0.05 yes '{word}' | head -c 3000000 >> {one}",
        f"echo '{word}' > {one}; kill -9 $$",
        f"(trap '' TERM; echo '{word}' > {one}; exec sleep 0.01); rm -f {one}",
        f"cd {above} && echo '{word}' > inside && cd .. && rm -rf {above}",
        f"exec 3<>{one}; rm -f {one}; cat <&3 > {two}; echo '{word}' >&3",
        f"touch .gitignore; echo '*.log' >> .gitignore; echo '{word}' > x.log; git status -s > status.txt",
        f"mkdir -p cached; echo '{word}' >> cached/f",
        f"dd if=/dev/zero of={one} bs=4k count=1 oflag=sync conv=fsync status=none",
        f"for n in {{1..30}}; do echo $n > {one}; done; sync {one}",
        "rm -rf ./* 2>/dev/null; git checkout -q -f HEAD -- .",
    ]


def _by_tools(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    wheel = (
        "import zipfile; z = zipfile.ZipFile('w-1-py3-none-any.whl', 'w'); z.writestr('w/__init__.py', 'n = 1'); "
        "z.writestr('w-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: w\\nVersion: 1\\n'); "
        "z.writestr('w-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'); "
        "z.writestr('w-1.dist-info/RECORD', ''); z.close()"
    )
    rules = "all: out.o built/two.o\\nout.o: g\\n\\tcat g > out.o; echo built >> built.log\\nbuilt/two.o:\\n\\tmkdir -p built; echo > $@\\n"
    return [
        f"printf '{rules}' > Makefile; echo '{word}' >> g; make -s -j4",
        "make -s -B all; make -s -t",
        f'python3 -c "{wheel}"; python3 -m pip install -q --no-index --no-deps --upgrade --target libs ./w-1-py3-none-any.whl',
        'printf \'{"name": "p", "version": "1.0.0", "files": ["g"]}\' > package.json; npm pack --silent --offline',
        "python3 -m compileall -q -b src",
        "python3 -m venv --without-pip env; rm -f env/bin/activate.fish",
        "printf 'int main(void) { return 0; }' > m.c; gcc -c m.c -o m.o && gcc m.o -o m.out; ar rc m.a m.o",
        (
            f"cp -r {above} above.new; sed -i 's/e/E/' above.new/*; diff -ru {above} above.new > p.diff; "
            f"patch -s -p0 < p.diff; patch -s -R -p0 < p.diff; rm -rf above.new"
        ),
        f"cp {one} old; echo '{word}' >> {one}; diff -u old {one} > p.diff; rm -f old; patch -s -b -f {two} p.diff",
        f"vim -es -u NONE -i NONE -c '%s/e/v/ge' -c wq {one} < /dev/null",
        f"vim -es -u NONE -i NONE -c 'set backup writebackup backupcopy=no' -c '%s/a/v/ge' -c wq {one} < /dev/null",
        f"vim -es -u NONE -i NONE -c 'set swapfile directory=.' -c 'normal ox' -c preserve -c 'silent !kill -9 $PPID' {one} < /dev/null",
        f"printf '1s/^/ed /\nw\nq\n' | ed -s {one}",
        f"ex -s -u NONE -c '1d|x' {one} < /dev/null",
        "sqlite3 data.db 'pragma journal_mode=delete; create table if not exists u (n); insert into u values (randomblob(9000))'",
        "sqlite3 data.db 'pragma journal_mode=wal; create table if not exists u (n); insert into u values (1); pragma wal_checkpoint'",
        (
            f"node -e \"const fs = require('fs'); const [a, b] = process.argv.slice(1); fs.appendFileSync(a, 'node'); "
            f"fs.cpSync(a, b); fs.renameSync(b, a); fs.mkdirSync('by/node', {{recursive: true}}); fs.copyFileSync(a, 'by/node/f')\" {one} {two}"
        ),
        f"zip -q -r z.zip {above}; rm -rf {above}; unzip -q -o z.zip; rm -f z.zip",
        f"xz -k -f {one}; bzip2 -k -f {two}; gunzip -f {one}.gz",
        f"cp -a --reflink=auto {above} copy; cp --reflink=auto {one} {two}",
        f"git ls-files -z | head -z -n 12 | xargs -0 -P 4 -n 1 sed -i 's/e/{word}/'",
        f"find {above} -type f -exec sed -i '1s/^/{word}/' {{}} \\;",
        "find . -name '*.p[yl]' -not -path './.git/*' -print0 | xargs -0 -r chmod +x",
        f"cp {one} {one}.1; : > {one}",
        f"ln -sfn {above} next; mv -fT next current; ln -sfn {one} next; mv -fT next current",
        f"T=$(mktemp -d) || exit; mv {one} $T/x; echo '{word}' >> $T/x; mv $T/x {one}; mv {above} $T/y; mv $T/y {above}; rm -rf $T",
        f"csplit -s -f part. {one} 1 2; cat part.* > {two}",
        f"flock {one} sh -c 'echo locked >> \"$0\"' {two}",
        "mv src swap && mv new src; mv swap new",
        f"cp --parents {one} backup 2>/dev/null || mkdir -p backup; cp --backup=numbered {one} backup; cp --backup=numbered {one} backup",
        f"install -d -m 1777 drop; install -b -m 600 {one} drop/f; install -b -m 644 {two} drop/f",
        f"iconv -f utf-8 -t utf-16 {one} -o {two}; tac {two} > {three}; rev {one} > {two}",
        f"perl -e 'rename $ARGV[0], $ARGV[1]; symlink $ARGV[1], $ARGV[0]; link $ARGV[1], \"hard\"' {one} {two}",
        f"cmp -s {one} {two} || cat {one} > {two}",
        f"dd if={one} of={two} bs=4096 oflag=direct conv=notrunc,fdatasync status=none; dd if=/dev/zero of={one} bs=1 seek=70000 count=1",
    ]


def _with_times(random_: random.Random, one: str, two: str, three: str, above: str, word: str) -> list[str]:
    """Changes that leave a file's size and its time of writing as they were, in the same file or another one."""
    return [
        f"touch -r {one} .stamp; printf X | dd of={one} conv=notrunc status=none; touch -r .stamp {one}; rm -f .stamp",
        f"cp -p {one} keep; tr 'a-y' 'b-z' < keep > {one}; touch -r keep {one}; rm -f keep",
        f"cp -p {one} keep; rm -f {one}; tr 'b-z' 'a-y' < keep > {one}; touch -r keep {one}; chmod --reference=keep {one}; rm -f keep",
        f"cp -p {one} keep; tr 'a-y' 'b-z' < {one} > t; touch -r keep t; chmod --reference=keep t; mv t {one}; rm -f keep",
        f"cp -p {one} keep; truncate -s 0 {one}; truncate -r keep {one}; touch -r keep {one}; rm -f keep",
        f"tar cpf t.tar {one}; echo '{word}' > {one}; tar xpf t.tar; rm -f t.tar",
        f"tar cpf old.tar {above}",
        "tar xpf old.tar",
        "tar xpf old.tar --overwrite; tar xpf old.tar --unlink-first --recursive-unlink",
        f"cp -p {one} saved; echo '{word}' >> {one}; cp -p saved {one}; rm -f saved",
        f"cp -p {one} saved; echo '{word}' >> {one}; mv saved {one}",
        (
            "perl -e '@s = stat $ARGV[0]; open F, q(+<), $ARGV[0] or exit; print F q(Q); close F; utime $s[8], $s[9], $ARGV[0]' "
            f"{one}"
        ),
        f"touch -d '1999-12-31 23:59:59.999' {one} {two}; touch -h -d '2001-01-01' {three}",
        f"touch -d '2038-01-20' {one}; touch -d '1969-12-31' {two}; echo '{word}' >> {one}",
        f"touch -d '2001-01-01' {above}; echo '{word}' > {above}/timed; touch -d '2001-01-01' {above}/timed {above}",
        f"ln -f {one} other; cp -p {one} keep; printf Y | dd of=other conv=notrunc status=none; touch -r keep {one}; rm -f other keep",
        f"for n in 1 2 3 4 5; do printf $n | dd of={one} conv=notrunc status=none; touch -d '2001-01-01' {one}; done",
        f"cp -p {one} {two}.keep; cat {two} > {one}; touch -r {two}.keep {one}; rm -f {two}.keep",
        f"find {above} -type f -exec touch -d '2001-01-01' {{}} +; sed -i 's/e/i/' {above}/*; touch -d '2001-01-01' {above}/*",
    ]
