"""The environment of a child process, and the protection of this process's own environment and memory.

A child inherits listed variables under a sandbox, and without one all but those that look like secrets. A name alone does not
make a variable safe: `HTTPS_PROXY` and `PIP_INDEX_URL` may carry a password, so every value is checked too. Only what the user
names in `pass_env` is inherited unchecked.

Without a sandbox a command could read this process's environment and memory through `/proc/PID/environ` and `/proc/PID/mem`, or
attach to it. `close` makes this process "not dumpable" (prctl(2), PR_SET_DUMPABLE), which closes it to all but root and
stops core files. What it starts is not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

ALLOWED: Final = frozenset((
    "PATH", "HOME",
    "LANG", "LANGUAGE", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
    "TERM", "COLORTERM", "NO_COLOR", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ", "CI",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "PIP_CERT",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_DEFAULT_TIMEOUT", "PIP_DISABLE_PIP_VERSION_CHECK",
    "UV_INDEX_URL",
    "npm_config_registry", "NPM_CONFIG_REGISTRY", "GOPROXY", "JAVA_HOME", "GOROOT", "PYENV_ROOT", "PYENV_VERSION", "NVM_DIR",
    "RUSTUP_HOME",
    "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "RAGIX_AUTO_DIFF", "RAGIX_ENABLE_SWE", "RAGIX_PROFILE", "RAGIX_VIEW_STATE",
))  # fmt: skip
"""Names of variables that are inherited when their value holds no secret."""

# Patterns are compiled at first use: every command imports this module to close its process, few look at variables.
_SUSPECT_NAME = (
    r"(?i:KEY|TOKEN|SECRET|PASS(?!IVE)|PASSWD|PWD|CREDENTIAL|CREDS|AUTH|COOKIE|SESSION|PRIVATE|SIGN|BEARER|JWT|LICENSE|DSN"
    r"|CONN(?:ECTION)?_?STR|DATABASE_URL|(?:^|_)PAT(?:$|_)|WEBHOOK|SALT)"
)
_HARMLESS_NAMES = frozenset({"PWD", "OLDPWD", "XDG_SESSION_TYPE", "XDG_SESSION_ID", "DESKTOP_SESSION", "PATH"})
_SUSPECT_VALUE = r"""(?x)
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY                         # PEM
    | [a-zA-Z][a-zA-Z0-9+.-]*://[^/\s@]+@                     # credentials in a URL
    | (?:^|[\s,;|])[^/\s@:,;|]+:[^/\s@,;|]+@[^/\s@]            # and before a host without a scheme, as curl takes a proxy
    | \b(?:sk|pk|rk)[-_](?:live|test|ant|proj|or)[-_][\w-]{8} # Stripe, Anthropic, OpenAI
    | \bsk-[A-Za-z0-9]{20}
    | \bgh[pousr]_[A-Za-z0-9]{20} | \bgithub_pat_\w{20} | \bglpat-[\w-]{16}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30}
    | \bxox[abprs]-[\w-]{10} | \bnpm_[A-Za-z0-9]{30} | \bpypi-[\w-]{30} | \bhf_[A-Za-z0-9]{20}
    | \beyJ[\w-]{6,}\.eyJ[\w-]{6,}\.                        # JSON Web Token
    """
# Long, without spaces or separators of paths and lists, letters and digits mixed: what a generator of keys prints.
_RANDOM = r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9+_=-]{32,}"

_QUERY = r"://[^\s?#]*[?]\S"
# A part of a URL's path that is a token: package indexes take them there.
_MIXED_PART = r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+_=]{20,}"


# Each command asks it of the same values.
@lru_cache(maxsize=256)
def _is_secret(value: str) -> bool:
    """Tell whether a value of an allowed variable holds a secret; a URL may also hold it in its query or its path."""
    if re.search(_SUSPECT_VALUE, value):
        return True
    if "://" not in value:
        return False
    # A URL is judged part by part: a token may be one part of its path, and the whole never looks random.
    parts = re.split(r"[/\s,;|]", value)
    return bool(re.search(_QUERY, value)) or any(re.fullmatch(f"{_RANDOM}|{_MIXED_PART}", one) for one in parts)


def is_secret_name(name: str) -> bool:
    """Tell whether the name of a variable says that its value is a secret, or leads to one."""
    return name not in _HARMLESS_NAMES and bool(re.search(_SUSPECT_NAME, name))


def looks_secret(name: str, value: str) -> bool:
    """Tell whether a variable looks like a secret, by its name or by its value."""
    # `PWD` and session names match the patterns of passwords and sessions, and programs need them.
    if name in _HARMLESS_NAMES:
        return False
    return is_secret_name(name) or bool(re.search(_SUSPECT_VALUE, value) or re.fullmatch(_RANDOM, value))


def allowed_variables(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Return what a sandboxed child inherits: the allowed names whose values hold no secret, and what `pass_env` names."""
    pass_names = set(pass_env)
    return {name: value for name, value in environ.items() if name in pass_names or (name in ALLOWED and not _is_secret(value))}


def without_secrets(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Return what a child inherits where no sandbox is: everything but what looks like a secret; `pass_env` names stay."""
    pass_names = set(pass_env)
    return {name: value for name, value in environ.items() if name in pass_names or not looks_secret(name, value)}


_PR_SET_DUMPABLE = 4


def close() -> None:
    """Close this process for the rest of its life. Front ends call it, for processes that are ours."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
