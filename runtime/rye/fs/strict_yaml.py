"""YAML that reads the same everywhere: without anchors, aliases, tags and repeated keys, and not nested too deep."""

from __future__ import annotations

import json
from typing import Any, Final

from rye.fs.records import without_twins

_DEEPEST: Final = 64
_LONGEST: Final = 100
_OF_TIMES: Final = frozenset("0123456789_+-.:")


class YamlError(ValueError):
    """A text is no such YAML: `fault` says why, as a predicate, and `remedy` what to do."""

    def __init__(self, fault: str, remedy: str = "Correct it.") -> None:
        super().__init__(fault)
        self.fault, self.remedy = fault, remedy


def read(text: str) -> Any:
    """Return what a text says; None for one that says nothing.

    Flow style that is JSON too, as the bundle's own files are, is read as that: a cold call need not load the YAML library.

    Raises:
        YamlError: it is no such YAML.
    """
    if text.lstrip()[:1] == "{":
        try:
            return dict(json.loads(text, object_pairs_hook=without_twins))
        except (ValueError, TypeError, RecursionError):
            # YAML may still be able to read it.
            pass
    import yaml

    # PyYAML can be installed without its C part.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Before `compose`: the depth is counted on tokens, without the recursion that it protects from.
        _refuse_hazards(text, loader)
        _refuse_repeats(yaml.compose(text, loader))
        return yaml.load(text, loader)  # noqa: S506 - a safe loader, whichever of the two
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        why = str(getattr(err, "problem", None) or err or type(err).__name__).splitlines()[0]
        # The C library has a limit of its own, from 0.2.6 on.
        raise _too_deep() if "maximum nesting depth" in why else YamlError(f"cannot be read: {why}") from None


def _refuse_hazards(text: str, loader: Any) -> None:
    """Refuse what could read otherwise elsewhere, and what is nested so deep that the C loader would end the process."""
    import yaml

    opening = (
        yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken | yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken
    )
    closing = yaml.BlockEndToken | yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken
    depth = 0
    for token in yaml.scan(text, loader):
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken | yaml.TagToken):
            raise YamlError("has anchors, aliases or tags", "Write the values out.")
        if (
            isinstance(token, yaml.ScalarToken)
            and token.plain
            and len(token.value) > _LONGEST
            and set(token.value) <= _OF_TIMES
        ):
            # `1:2:3` is a number to base 60, and the time for one grows with the square of its length.
            raise YamlError(f"holds a number of more than {_LONGEST} characters", "Put it in quotes.")
        depth += isinstance(token, opening) - isinstance(token, closing)
        if depth > _DEEPEST:
            raise _too_deep()


def _too_deep() -> YamlError:
    return YamlError(f"is nested deeper than {_DEEPEST} levels", "Write it flatter.")


def _refuse_repeats(node: Any) -> None:
    if node is None or not hasattr(node, "value") or isinstance(node.value, str):
        return
    keys = [pair[0].value for pair in node.value if isinstance(pair, tuple)]
    if len(keys) != len({str(key) for key in keys}):
        raise YamlError("repeats a key", "Keep one of them.")
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            _refuse_repeats(part)
