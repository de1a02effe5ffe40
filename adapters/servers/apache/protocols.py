"""What a private instance needs to speak TLS (mod_ssl) and HTTP/2 (mod_http2), and the settings of both."""

from collections.abc import Collection, Mapping

from tuner.adapters.servers.apache.builds import ApacheBuild
from tuner.adapters.servers.apache.mpm import name_forbidden
from tuner.adapters.servers.apache.syntax import quote
from tuner.errors import ConfigRejected
from tuner.kit.packages import name_command
from tuner.ports import H2, H2C, HTTP1, TLS, Certificate, Config, Scalar, Site

_OF_TLS, _OF_HTTP2 = ("socache_shmcb", "ssl"), ("http2",)
NEEDED: Mapping[str, tuple[str, ...]] = {TLS: _OF_TLS, H2: (*_OF_HTTP2, *_OF_TLS), H2C: _OF_HTTP2}
"""What it can be loaded with → the modules that it takes besides the packaged ones."""

SSL_SETTINGS: Mapping[str, Scalar] = {
    "SSLSessionCache": 512_000, "SSLSessionCacheTimeout": 300, "SSLSessionTickets": False,
}  # fmt: skip
"""Those of mod_ssl with what Debian's ssl.conf gives; a cache of 0 bytes is none."""
HTTP2_SETTINGS: Mapping[str, Scalar] = {
    # modules/http2/h2_config.c; of the workers, what follows from 25 threads (h2_get_workers_config)
    "H2MinWorkers": 25, "H2MaxWorkers": 37, "H2MaxSessionStreams": 100, "H2WindowSize": 65535,
    "H2StreamMaxMemSize": 32768, "H2CopyFiles": False,
}  # fmt: skip
"""Those of mod_http2 with what it does without a line."""
SETTINGS = SSL_SETTINGS.keys() | HTTP2_SETTINGS.keys()

# As Debian's ssl.conf has it. Protocols and ciphers protect: they are the administrator's, and never tuned.
_SERVER = """\
SSLRandomSeed startup builtin
SSLRandomSeed startup file:/dev/urandom 512
SSLRandomSeed connect builtin
SSLRandomSeed connect file:/dev/urandom 512
AddType application/x-x509-ca-cert .crt
AddType application/x-pkcs7-crl .crl
SSLCipherSuite HIGH:!aNULL
SSLProtocol all -SSLv3
"""
# As Debian's default-ssl.conf has it.
_HOST = """\
    SSLEngine on
    SSLCertificateFile "{file}"
    SSLCertificateKeyFile "{key}"
    <FilesMatch "\\.(?:cgi|shtml|phtml|php)$">
        SSLOptions +StdEnvVars
    </FilesMatch>
"""
# As Debian's http2.conf has it: HTTP/2 with and without TLS, for who asks for it.
_PROTOCOLS = "Protocols h2 h2c http/1.1\n"


def modules_spoken(site: Site) -> tuple[str, ...]:
    """Name the modules that the protocols of a site take besides the packaged ones."""
    return (
        *(_OF_HTTP2 if site.protocol != HTTP1 else ()),
        *(_OF_TLS if site.certificate is not None else ()),
    )


def name_missing(mpm: str, installed: Collection[str], build: ApacheBuild) -> dict[str, str]:
    """Return what it can be loaded with, each with what is missing for it; empty where nothing is.

    Args:
        mpm: which one is loaded.
        installed: names of the modules that there are.
        build: whose they are.
    """
    return {offer: _name_missing(mpm, needed, installed, build) for offer, needed in NEEDED.items()}


def _name_missing(mpm: str, needed: tuple[str, ...], installed: Collection[str], build: ApacheBuild) -> str:
    if forbidden := name_forbidden(mpm, frozenset(needed)):
        return f"{'; '.join(forbidden)}. Use a server with another MPM: apache, or apache-worker"
    missing = [module for module in needed if module not in installed]
    if not missing:
        return ""
    packages = " ".join(build.packages[module] for module in missing if module in build.packages)
    remedy = "Use a build that has it, by its path: `program:`"
    if packages:
        remedy = f"Install the package: {name_command(build.installer, packages)}"
    files = " and ".join(f"mod_{module}.so" for module in missing)
    return f"{files} cannot be found in {build.modules}. {remedy}"


def refuse_forbidden(site: Site, mpm: str) -> None:
    """Raise ConfigRejected when an MPM does not work with the modules that a site takes."""
    if forbidden := name_forbidden(mpm, frozenset(modules_spoken(site))):
        raise ConfigRejected(f"apache: {'; '.join(forbidden)}, and the load speaks {site.protocol}.")


def is_spoken(name: str, site: Site) -> bool:
    """Return whether the module of a setting is loaded; without it its directive is not known."""
    if name in SSL_SETTINGS:
        return site.certificate is not None
    return name not in HTTP2_SETTINGS or site.protocol != HTTP1


def write_session_cache(size: str, site: Site) -> str:
    """Write the cache of TLS sessions that all processes share; its size is in bytes, 0 for none."""
    kind = "none" if size == "0" else f"shmcb:{quote(site.directory)}/ssl_scache({size})"
    return f'SSLSessionCache "{kind}"'


def write_for_server(site: Site) -> str:
    """Write the fixed lines at the level of the server."""
    return (_PROTOCOLS if site.protocol != HTTP1 else "") + (_SERVER if site.certificate else "")


def write_for_host(certificate: Certificate | None) -> str:
    """Write the fixed lines of the virtual host."""
    if certificate is None:
        return ""
    return _HOST.format(file=quote(certificate.file), key=quote(certificate.key))


def count_http2_workers(config: Config, site: Site) -> int:
    """Return how many threads mod_http2 starts in a child (modules/http2/h2_workers.c, h2_workers_create)."""
    return int(config.get("H2MinWorkers", 0)) if site.protocol != HTTP1 else 0
