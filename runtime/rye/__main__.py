"""`python -m rye` is the command `rye`."""

import sys

if __name__ == "__main__":
    # `-m` puts the current folder first on the path, where a project could offer modules of its own.
    if sys.path and not sys.flags.safe_path:
        del sys.path[0]
    from rye.cli.main import command

    command()
