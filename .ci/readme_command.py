"""Print a command block of README.md by the name in the comment above it: `<!-- command: NAME -->`."""

import pathlib
import re
import sys

text = (pathlib.Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
found = re.search(rf"<!-- command: {re.escape(sys.argv[1])} -->\n```sh\n(.*?)```", text, re.DOTALL)
if found is None:
    sys.exit(f"README.md has no command block named {sys.argv[1]}")
print(found[1], end="")
