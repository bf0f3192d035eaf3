"""Words without an option are read without argparse: what is made of them is what the parser would make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.cli import main
from rye.cli.rt import verbs as rt_verbs

VERBS = [("rye", name) for name in main.verb_names() if main.verb_of(name).plain is not None]
VERBS += [("rt", name) for name, verb in rt_verbs.VERBS.items() if verb.plain is not None]
WORDS = st.lists(st.text(max_size=8), max_size=4)


def test_these_verbs_do_without_the_parser():
    assert VERBS == [("rye", "execute"), ("rt", "open"), ("rt", "find"), ("rt", "grep")]


@pytest.mark.parametrize(("command", "name"), VERBS)
@given(words=WORDS)
def test_words_mean_what_the_parser_makes_of_them(command, name, words):
    verb = main.verb_of(name) if command == "rye" else rt_verbs.VERBS[name]
    plain = main.without_options(verb.plain, words)
    if not words or any(word[:1] == "-" for word in words):
        assert plain is None
    elif plain is not None:
        parser = main.parser_of(name, verb) if command == "rye" else rt_verbs.parser_of(name)
        assert vars(plain) == vars(main.parsed(parser, words))
