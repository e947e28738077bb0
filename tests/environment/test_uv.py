"""What uv is told, and what its failures are called. The texts are uv's own, as it printed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdeck import runner
from torchdeck.environment import uv
from torchdeck.errors import DiskError, FindingsError, NetworkError, ToolError, TorchdeckError

_DNS = """error: Failed to fetch: `https://mirror.example.org/simple/torch/`
  cause: error sending request for url (https://mirror.example.org/simple/torch/)
  cause: client error (Connect)
  cause: dns error
  cause: failed to lookup address information: Name or service not known
"""
_NO_SOLUTION = """  × No solution found when resolving dependencies:
  ╰─▶ Because you require torch==2.6.0 and torch==2.3.0, we can conclude that your requirements are unsatisfiable.
"""
_TLS = """error: Failed to fetch: `https://mirror.example.org/simple/torch/`
  cause: error sending request for url (https://mirror.example.org/simple/torch/)
  cause: client error (Connect)
  cause: invalid peer certificate: UnknownIssuer
"""
_FULL = "error: Failed to write to the distribution cache\n  cause: No space left on device (os error 28)\n"
_DENIED = "error: failed to create directory `/srv/env`\n  cause: Permission denied (os error 13)\n"
_HASH = "error: Hash mismatch for `six==1.17.0`\n\nExpected:\n  sha256:00\n\nComputed:\n  sha256:11\n"


@pytest.mark.parametrize(
    ("stderr", "kind", "code", "word"),
    [
        (_DNS, NetworkError, 4, "Name or service not known"),
        (_TLS, NetworkError, 4, "certificate"),
        (_FULL, DiskError, 4, "no space"),
        (_DENIED, DiskError, 4, "may not be written"),
        (_NO_SOLUTION, FindingsError, 1, "no set of versions"),
        (_HASH, FindingsError, 1, "not the one that the lock names"),
        ("thread 'main' panicked", ToolError, 4, "uv ended with 2"),
    ],
)
def test_each_failure_of_uv_has_its_own_error(stderr: str, kind: type[TorchdeckError], code: int, word: str) -> None:
    """The kind of failure decides the exit code, and the found line says what it was."""
    error = uv.explain_failure(runner.Completed(("uv",), 2, stderr=stderr), "install the packages")
    assert type(error) is kind
    assert error.exit_code == code
    assert word in error.found


def test_a_certificate_that_is_not_trusted_names_the_variable() -> None:
    """Behind a proxy with its own authority, the mend is the bundle."""
    error = uv.explain_failure(runner.Completed(("uv",), 2, stderr=_TLS), "install the packages")
    assert "SSL_CERT_FILE" in error.mend[0]


def test_pip_configuration_reaches_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror, a proxy and a certificate that only pip's file knows are handed to uv, never in its arguments."""
    bundle = tmp_path / "ca.crt"
    bundle.write_text("x")
    config = tmp_path / "pip.conf"
    text = f"[global]\nindex-url = https://u:s%cret@mirror.example.org/simple\ncert = {bundle}\nproxy = http://p:3128\n"
    config.write_text(text)
    for name in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "HTTPS_PROXY", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PIP_CERT", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    env = uv.uv_environment()
    assert env["UV_DEFAULT_INDEX"] == "https://u:s%cret@mirror.example.org/simple"
    assert env["SSL_CERT_FILE"] == str(bundle)
    assert env["HTTPS_PROXY"] == "http://p:3128"


def test_uvs_own_settings_win_over_pips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who set up a mirror for uv keeps it."""
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example.org/simple")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://uv.example.org/simple")
    assert uv.uv_environment()["UV_DEFAULT_INDEX"] == "https://uv.example.org/simple"


def test_variables_that_redirect_an_installation_do_not_reach_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """An active environment, a constraint or another torch backend of the caller's is left out."""
    names = ("VIRTUAL_ENV", "UV_CONSTRAINT", "UV_TORCH_BACKEND", "PYTHONPATH", "UV_SYSTEM_PYTHON")
    for name in names:
        monkeypatch.setenv(name, "/elsewhere")
    assert not set(names) & set(uv.uv_environment())


def test_a_failure_is_written_to_the_log_before_it_is_raised(tmp_path: Path) -> None:
    """The log holds the command, what uv printed and its exit code."""
    log = tmp_path / "install.log"
    with pytest.raises(ToolError):
        uv.run_uv(["no-such-command"], cwd=tmp_path, doing="try", log=log)
    text = log.read_text()
    assert text.startswith("$ uv no-such-command")
    assert "[exit 2]" in text
