"""Random shell scripts that change a project's files in every way that a shell has, over a few names, so that their steps meet."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

WORDS = ["alpha", "beta", "gamma", "delta", "x y", "ü", "-n"]
NAMES = [
    "a.txt", "b.txt", "src/c.py", "src/d e.py", "src/deep/f", "g", "src/link", "new/h", "new/dir/i", "bin.dat", "A.txt", "src/C.py",
    "-dash", "new\nline", "tab\t", "quo\"te", "back\\slash", "*", "caf\u00e9", "cafe\u0301", " space ", "\udcff\udcfe", "e" * 240,
    ".hidden", "dot.", "\u202egnp.txt", "\U0001f600", "x.rye-set-aside", ".rye-0123456789abcdef.tmp", "src/.hidden/j", "%s", "~",
]  # fmt: skip
"""Names that scripts use, so that their steps meet: cases, controls, bytes that are no UTF-8, long ones, some like our own."""
MODES = ["600", "755", "444", "640", "711", "1644", "a+x", "u+s", "g+s", "+t", "6755"]

# One script a line. `<one>` to `<three>` are names, `<above>` is a folder, `<word>` a text, `<small>` and `<large>` are numbers;
# a line behind `py ` is Python, to which `one` and `two` are names.
STEPS = r"""
mkdir -p "$(dirname <one>)"; echo '<word>' > <one>
echo '<word>' >> <one>
sed -i.bak 's/e/<word>/g' <one> <two>
head -c <large> /dev/urandom > <one>
truncate -s <small> <one>; truncate -s <large> <two>
dd if=/dev/urandom of=<one> bs=7 seek=30 count=3 conv=notrunc status=none
fallocate -l 100k <one>; fallocate -p -o 0 -l 4096 <one>
truncate -s 64k <one>; fallocate -z -o 4096 -l 8192 <one>; fallocate -c -o 0 -l 4096 <one>
umask 077; echo private > <one>; touch -d '2001-01-01' <two>
shred -n 1 -u <one>
mv -f <one> <two>; mv -f <two> <three>
mv <one> swap; mv <two> <one>; mv swap <two>
mv <above> moved; mkdir -p <above>
rm -rf <one> <two>
rm -rf <one>; mkdir -p <one>/er; touch <one>/inner; ln -s er <one>/link
rm -rf <one>; ln -s g <one>; rm -f <one>; mkfifo <one>; rm -f <one>
cp -a <above> copy; cp -al <above> linked; cp --sparse=always --reflink=auto <one> <two>
ln -sf <one> <two>; ln -sfn <above> <one>; ln -s /nowhere/at/all <three>
ln -f <one> <two>; echo '<word>' >> <two>; rm -f <one>
ln -f <one> <two>; ln -f <two> <three>; mv -f <two> <one>
ln -s . <above>/loop; ln -s ../.. <above>/up; ln -s two one; ln -s one two
ln -s <above> <one>; echo '<word>' > <one>/through
mv A.txt a.TXT; mv src SRC; mv SRC src
exec 3>><one>; rm -f <one>; echo gone >&3; echo back > <one>; echo again >&3
exec 3>><one>; mv <one> <two>; echo moved >&3
exec 3<><one>; rm -f <one>; cat <&3 > <two>; echo '<word>' >&3
chmod <mode> <one> <two>
chmod -R <mode> <above>
chmod 555 <above>; echo '<word>' > <above>/inside; echo '<word>' >> <one>
mkdir -m 2775 shared; mkdir shared/below; echo '<word>' > shared/below/f
mkdir -p closed; echo '<word>' > closed/f; chmod 500 closed
chmod -R u+w .; rm -rf closed shared wide far empty
chmod u+s <one>; echo '<word>' >> <one>
tar cf t.tar src && rm -rf src && mkdir <one>; tar xf t.tar; rm -f t.tar
rmdir <one>; mkdir -p empty/er; chmod 700 empty
mkdir -p $(printf 'far/%.0s' {1..60}); echo down > $(printf 'far/%.0s' {1..60})f
mkdir -p wide; cd wide; seq 120 | xargs touch
git add -A; git commit -qm x
git stash -u; git stash pop
git stash -a; git stash apply
git checkout -q -B other; git checkout -q -f master
git checkout -q HEAD~1 -- <one>; git restore --source=HEAD~1 <two>
git reset -q --hard HEAD~1
git add -A; git commit -qm y; git checkout -q -B side HEAD~1; git merge -q master; git checkout -q -f master
git mv <one> <two>; git rm -qrf <three>
git -c core.autocrlf=true checkout -q -f HEAD~1 -- . ; git checkout -q -f HEAD -- .
git diff HEAD > d.patch; git checkout -qf HEAD -- .; echo '<word>' >> <one>; git apply --reject d.patch; rm -f d.patch
git sparse-checkout set --no-cone src; git sparse-checkout disable
rm -rf src; git -c core.fileMode=false -c core.symlinks=false checkout -q -f HEAD -- .
echo '* text eol=crlf' > .gitattributes; git add -A; git commit -qm eol; git rm -q --cached -r .; git reset -q --hard
git checkout -q --orphan bare; git rm -qrf .; git checkout -q -f master
for i in 1 2 3 4; do (echo $i > <two>.$i; mv <two>.$i <two>; echo $i >> <one>) & done; wait
(while :; do echo x >> <one>; done) & sleep 0.03; mv <one> <two>; kill $!
( sleep 0.02; echo later >> <one> ) &
setsid sh -c 'for i in 1 2 3 4 5; do echo $i >> detached; done' & echo '<word>' >> <one>
mkfifo -m 622 pipe; echo through > pipe & cat pipe > got; wait
head -c 11000000 /dev/urandom > large; cp large <one>; rm -f large
ulimit -f 8; yes > <one>
echo '<word>' > <one>; kill -9 $$
rm -rf ./* 2>/dev/null; git checkout -q -f HEAD -- .
printf 'all: out.o\nout.o: g\n\tcat g > out.o; echo built >> built.log\n' > Makefile; echo '<word>' >> g; make -s -j4
ln -sfn <above> next; mv -fT next current; ln -sfn <one> next; mv -fT next current
T=$(mktemp -d) || exit; mv <one> $T/x; echo '<word>' >> $T/x; mv $T/x <one>; mv <above> $T/y; mv $T/y <above>; rm -rf $T
mv src swap && mv new src; mv swap new
perl -e 'rename $ARGV[0], $ARGV[1]; symlink $ARGV[1], $ARGV[0]; link $ARGV[1], "hard"' <one> <two>
cp -p <one> keep; tr 'a-y' 'b-z' < keep > <one>; touch -r keep <one>; rm -f keep
cp -p <one> keep; tr 'a-y' 'b-z' < <one> > t; touch -r keep t; chmod --reference=keep t; mv t <one>; rm -f keep
cp -p <one> saved; echo '<word>' >> <one>; mv saved <one>
touch -d '2038-01-20' <one>; touch -d '1969-12-31' <two>; echo '<word>' >> <one>; touch -h -d '2001-01-01' <three>
ln -f <one> other; cp -p <one> keep; printf Y | dd of=other conv=notrunc status=none; touch -r keep <one>; rm -f other keep
py f = open(one, 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:1] = b'M'; m[-1:] = b'E'
py f = open(one, 'a+b'); f.truncate(9000); m = mmap.mmap(f.fileno(), 0); m[8000:8003] = b'map'; m.flush()
py f = open(one, 'r+b'); m = mmap.mmap(f.fileno(), 0); os.rename(one, two); m[:1] = b'R'
py ctypes.CDLL(None).renameat2(-100, one, -100, two, 2)
py a, b = (os.path.dirname(one) or b'src'), (os.path.dirname(two) or b'new'); ctypes.CDLL(None).renameat2(-100, a, -100, b, 2)
py f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o640); os.write(f, b'un'); os.link(f'/proc/self/fd/{f}', one, follow_symlinks=True)
py f = os.open(one, os.O_RDONLY); g = os.open(two, os.O_WRONLY | os.O_CREAT); os.sendfile(g, f, 0, 99); os.copy_file_range(f, g, 9, 0, 4)
py ts = [threading.Thread(target=lambda n: open(two, 'ab').write(b'%d' % n), args=(n,)) for n in range(8)]; [t.start() for t in ts]
py s = os.stat(one); f = open(one, 'r+b'); m = mmap.mmap(f.fileno(), 0); m[-1:] = b'N'; m.close(); os.utime(one, (s.st_atime, s.st_mtime))
py d = sqlite3.connect('data.db'); d.execute('pragma journal_mode=wal'); d.execute('create table if not exists t (n)'); os._exit(0)
""".strip().splitlines()
_HEAD = "import ctypes, mmap, os, sqlite3, sys, threading; one, two = map(os.fsencode, sys.argv[1:]); "


def quoted(name: str) -> str:
    """Return a name as bash reads it, whatever bytes it has; nothing else of a script has such bytes."""
    raw = os.fsencode(name)
    return "$'" + "".join(chr(one) if 32 <= one < 127 and one not in b"\\'" else f"\\x{one:02x}" for one in raw) + "'"


def script(random_: random.Random) -> str:
    """Return a random script over a few names, so that its steps meet."""
    return "\n".join(_step(random_) for _ in range(random_.randint(1, 6)))


def _step(random_: random.Random) -> str:
    told = {
        **{which: f"./{quoted(random_.choice(NAMES))}" for which in ("one", "two", "three")},
        "above": f"./{quoted(os.path.dirname(random_.choice(NAMES)) or 'src')}",
        "word": random_.choice(WORDS),
        "mode": random_.choice(MODES),
        "small": f"{random_.randrange(5000)}",
        "large": f"{random_.randrange(9 << 20)}",
    }
    step = random_.choice(STEPS)
    if step.startswith("py "):
        return f'python3 -c "{_HEAD}{step[3:]}" {told["one"]} {told["two"]}'
    return re.sub(f"<({'|'.join(told)})>", lambda match: told[match[1]], step)
