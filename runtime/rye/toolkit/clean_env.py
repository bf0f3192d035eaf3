"""The environment of a child process: an allow-list under a sandbox, a deny-list for secrets without one.

A name alone does not make a variable safe: `HTTPS_PROXY` and `PIP_INDEX_URL` may carry a password. So every inherited value is
also looked at, and what the user names in `pass_env` is the only thing that goes through unseen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALLOWED: Final = frozenset({
    "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ", "CI",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "PIP_CERT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_DEFAULT_TIMEOUT",
    "PIP_DISABLE_PIP_VERSION_CHECK", "UV_INDEX_URL", "npm_config_registry", "NPM_CONFIG_REGISTRY", "GOPROXY", "JAVA_HOME",
    "GOROOT", "PYENV_ROOT", "PYENV_VERSION", "NVM_DIR", "RUSTUP_HOME", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED",
})  # fmt: skip
"""Names that go through when their value holds no secret; all that begin with `LC_` do as well."""

_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASS(?!IVE)|PASSWD|PWD|CREDENTIAL|CREDS|AUTH|COOKIE|SESSION|PRIVATE|SIGN|BEARER|JWT|LICENSE|DSN"
    r"|CONN(?:ECTION)?_?STR|DATABASE_URL|(?:^|_)PAT(?:$|_)|WEBHOOK|SALT",
    re.IGNORECASE,
)
_NOT_SECRET_NAME = frozenset({"PWD", "OLDPWD", "XDG_SESSION_TYPE", "XDG_SESSION_ID", "DESKTOP_SESSION", "PATH"})
_SECRET_VALUE = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY                         # PEM
    | [a-zA-Z][a-zA-Z0-9+.-]*://[^/\s@]+@                     # credentials in a URL
    | \b(?:sk|pk|rk)[-_](?:live|test|ant|proj|or)[-_][\w-]{8} # Stripe, Anthropic, OpenAI
    | \bsk-[A-Za-z0-9]{20}
    | \bgh[pousr]_[A-Za-z0-9]{20} | \bgithub_pat_\w{20} | \bglpat-[\w-]{16}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30}
    | \bxox[abprs]-[\w-]{10} | \bnpm_[A-Za-z0-9]{30} | \bpypi-[\w-]{30} | \bhf_[A-Za-z0-9]{20}
    | \beyJ[\w-]{6,}\.eyJ[\w-]{6,}\.                        # JSON Web Token
    """,
    re.VERBOSE,
)
# Long, without spaces or separators of paths and lists, letters and digits mixed: what a generator of keys prints.
_RANDOM = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9+_=-]{32,}")


def looks_secret(name: str, value: str) -> bool:
    """Tell whether a variable looks like a secret, by its name or by its value."""
    if name in _NOT_SECRET_NAME:
        return False
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value) or _RANDOM.fullmatch(value))


def allowed(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Return what a sandboxed child inherits: the allowed names whose values hold no secret, and what `pass_env` names."""
    passed = set(pass_env)
    return {
        name: value
        for name, value in environ.items()
        if name in passed or ((name in ALLOWED or name.startswith("LC_")) and not _SECRET_VALUE.search(value))
    }


def without_secrets(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Return what a child inherits where no sandbox is: everything but what looks like a secret; `pass_env` names stay."""
    passed = set(pass_env)
    return {name: value for name, value in environ.items() if name in passed or not looks_secret(name, value)}
