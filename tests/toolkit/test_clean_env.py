"""Which variables a child inherits."""

from __future__ import annotations

import pytest

from rye.toolkit import clean_env

# Made up, in the shapes that services give out.
SECRET = {
    "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "x", "DB_PASSWORD": "x", "MYSQL_PWD": "x", "GOOGLE_CREDENTIALS": "x",
    "SENTRY_DSN": "x", "GH_PAT": "x", "stripe_key": "x", "HTTPS_PROXY": "http://me:word@proxy:1", "A": "postgres://u:p@h/d",
    "B": "ghp_" + "a1" * 18, "C": "AKIA" + "ABCDEFGH12345678", "D": "sk-ant-" + "api03-abcdefgh", "E": "-----BEGIN RSA PRIVATE KEY",
    "F": "eyJhbGciOiJI.eyJzdWIiOiIx.abc", "G": "0123456789abcdef" * 3,
}  # fmt: skip
PLAIN = {
    "PATH": "/usr/bin:/bin", "PWD": "/home/me", "OLDPWD": "/", "HOME": "/home/me", "LANG": "C.UTF-8", "EDITOR": "vi",
    "HTTPS_PROXY": "http://proxy:3128", "LS_COLORS": "rs=0:di=01;34:ln=01;36", "JAVA_HOME": "/usr/lib/jvm/java-17",
    "XDG_SESSION_TYPE": "x11", "TERM": "xterm-256color",
}  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_what_looks_like_a_secret_is_left_out(name):
    assert clean_env.without_secrets({name: SECRET[name]}) == {}
    assert clean_env.allowed({name: SECRET[name]}) == {}


@pytest.mark.parametrize("name", PLAIN)
def test_what_does_not_stays(name):
    assert clean_env.without_secrets({name: PLAIN[name]}) == {name: PLAIN[name]}


def test_the_allowed_are_few_and_known():
    environ = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HOME": "/h",
        "EDITOR": "vi",
        "NOTES": "x",
        "LD_PRELOAD": "/x.so",
        "BASH_ENV": "/x",
    }
    assert clean_env.allowed(environ) == {"PATH": "/bin", "LC_ALL": "C", "HOME": "/h"}


def test_what_the_user_names_goes_through():
    environ = {"GITHUB_TOKEN": "x", "OTHER_TOKEN": "y"}
    assert clean_env.allowed(environ, ["GITHUB_TOKEN", "ABSENT"]) == {"GITHUB_TOKEN": "x"}
    assert clean_env.without_secrets(environ, ["GITHUB_TOKEN"]) == {"GITHUB_TOKEN": "x"}
