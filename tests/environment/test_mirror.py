"""uv against a mirror on loopback whose certificate authority only this user's pip configuration knows."""

from __future__ import annotations

import base64
import hashlib
import http.server
import ssl
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from torchdeck.environment.uv import run_uv
from torchdeck.errors import NetworkError

NAME = "torchdeck_mirror_probe"


def make_wheel(folder: Path) -> Path:
    info = f"{NAME}-1.0.dist-info"
    files = {
        f"{NAME}.py": b"value = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=") for name, data in files.items()
    }
    record = [f"{name},sha256={digests[name].decode()},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = folder / f"{NAME}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


class Mirror:
    """A package index with one package, behind TLS."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.bundle = folder / "authority.pem"
        self.authority.cert_pem.write_to_path(self.bundle)
        served = folder / "served"
        (served / "simple" / NAME.replace("_", "-")).mkdir(parents=True)
        wheel = make_wheel(served)
        page = f'<a href="/{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}">{wheel.name}</a>'
        (served / "simple" / NAME.replace("_", "-") / "index.html").write_text(f"<html><body>{page}</body></html>")

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments: object) -> None:
                super().__init__(*arguments, directory=str(served))  # type: ignore[arg-type, misc]

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.index = f"https://127.0.0.1:{self.server.server_port}/simple"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    found = Mirror(tmp_path)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away what this machine says of indexes and certificates, and the cache."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "PIP_INDEX_URL",
                 "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy",
                 "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


def install(tmp_path: Path) -> Path:
    target = tmp_path / "target"
    arguments = ["pip", "install", "--quiet", "--target", str(target), NAME]
    run_uv(arguments, cwd=tmp_path, doing="install the probe", timeout_s=60)
    return target / f"{NAME}.py"


@pytest.mark.parametrize("variable", ["PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_pips_mirror_and_its_certificate_authority_reach_uv(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", mirror.index)
    monkeypatch.setenv(variable, str(mirror.bundle))
    assert install(tmp_path).is_file()


def test_a_pip_configuration_file_is_enough(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nindex-url = {mirror.index}\ncert = {mirror.bundle}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    assert install(tmp_path).is_file()


def test_a_mirror_whose_authority_is_not_known_is_named_with_the_mend(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", mirror.index)
    with pytest.raises(NetworkError) as caught:
        install(tmp_path)
    assert caught.value.exit_code == 4
    assert "certificate" in caught.value.found
    assert "SSL_CERT_FILE" in caught.value.mend[0]


def test_a_mirror_that_does_not_answer_is_a_network_error(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:9/simple")
    with pytest.raises(NetworkError) as caught:
        install(tmp_path)
    assert "index" in caught.value.needs
