"""Which variables a child inherits."""

from __future__ import annotations

from rye.sandbox import environment

# Made up, in the shapes that services give out.
SECRET = {
    **dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "MYSQL_PWD", "GOOGLE_CREDENTIALS"), "x"),
    **dict.fromkeys(("SENTRY_DSN", "GH_PAT", "stripe_key"), "x"),
    "HTTPS_PROXY": "http://me:word@proxy:1", "A": "postgres://u:p@h/d", "B": "ghp_" + "a1" * 18,
    "C": "AKIA" + "ABCDEFGH12345678", "D": "sk-ant-" + "api03-abcdefgh", "E": "-----BEGIN RSA PRIVATE KEY",
    "F": "eyJhbGciOiJI.eyJzdWIiOiIx.abc", "G": "0123456789abcdef" * 3,
}  # fmt: skip
PLAIN = {
    "PATH": "/usr/bin:/bin", "PWD": "/home/me", "OLDPWD": "/", "HOME": "/home/me", "LANG": "C.UTF-8", "EDITOR": "vi",
    "HTTPS_PROXY": "http://proxy:3128", "LS_COLORS": "rs=0:di=01;34:ln=01;36", "TERM": "xterm-256color",
    "JAVA_HOME": "/usr/lib/jvm/java-17", "XDG_SESSION_TYPE": "x11",
}  # fmt: skip
# Of the allowed names, whose values are places where packages are found.
PACKAGES = {
    "HTTPS_PROXY": ["me:word@proxy:3128", "http://proxy:1/?token=abc"],
    "PIP_INDEX_URL": ["https://pypi.corp/a1b2c3d4e5f6a7b8c9d0e1/simple", "https://host/simple?token=x"],
    "UV_INDEX_URL": ["https://host/t/0123456789abcdef0123456789abcdef/simple"],
    "GOPROXY": ["https://goproxy.corp/tok3nTok3nTok3nTok3n,direct", "https://a|me:word@b"],
    "npm_config_registry": ["https://npm.corp/?auth=abc"],
    "PIP_FIND_LINKS": ["https://host/AbCdEf0123456789AbCdEf/links"],
    "LC_DEPLOY_TOKEN": ["anything"],
}
HARMLESS = {
    "PIP_INDEX_URL": "https://artifacts.corp.example:8443/artifactory/api/pypi/pypi-virtual-2024/simple",
    "GOPROXY": "https://proxy.golang.org,direct", "npm_config_registry": "https://registry.npmjs.org/",
    "LC_TIME": "de_DE.UTF-8", "NO_PROXY": "localhost,127.0.0.1,.corp.example",
    "PATH": "/opt/python@3.11/bin:/usr/bin:/opt/node@18/bin",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem", "HTTPS_PROXY": "proxy.corp.example:3128",
}  # fmt: skip


def test_what_looks_like_a_secret_is_left_out_unless_the_user_names_it_and_what_does_not_stays():
    for name, values in PACKAGES.items():
        for value in values:
            assert environment.allowed_variables({name: value}) == {}
            assert environment.allowed_variables({name: value}, [name]) == {name: value}
    for name, value in HARMLESS.items():
        assert environment.allowed_variables({name: value}) == {name: value}
    assert environment.without_secrets(SECRET) == environment.allowed_variables(SECRET) == {}
    assert environment.without_secrets(PLAIN) == PLAIN


def test_the_allowed_are_few_and_known_and_what_the_user_names_goes_through():
    others = {"EDITOR": "vi", "NOTES": "x", "LD_PRELOAD": "/x.so", "BASH_ENV": "/x"}
    environ = {"PATH": "/bin", "LC_ALL": "C", "HOME": "/h"}
    assert environment.allowed_variables({**environ, **others}) == environ
    environ = {"GITHUB_TOKEN": "x", "OTHER_TOKEN": "y"}
    assert environment.allowed_variables(environ, ["GITHUB_TOKEN", "ABSENT"]) == {"GITHUB_TOKEN": "x"}
    assert environment.without_secrets(environ, ["GITHUB_TOKEN"]) == {"GITHUB_TOKEN": "x"}
