"""TLS and HTTP/2 of private instances: what is written, and what an installation lacks for it."""

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
import yaml

from tests.unit.adapters.servers.golden import RecordedHost
from tuner.adapters.servers.apache import Apache, ApacheMpm, ApachePrefork, ApacheWorker
from tuner.adapters.servers.apache import read_back as of_apache
from tuner.adapters.servers.apache.builds import DEBIAN
from tuner.adapters.servers.apache.config import CONFIG_FILE as APACHE_FILE
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.nginx import read_back as of_nginx
from tuner.adapters.servers.nginx.config import CONFIG_FILE as NGINX_FILE
from tuner.adapters.servers.nginx.config import write_configuration
from tuner.deploy.arrangement import require_offer
from tuner.errors import ConfigRejected, TargetError, UsageError
from tuner.ports import H2, H2C, HTTP1, TLS, Certificate, Config, Facts, Files, Server, Site
from tuner.study import load_study
from tuner.testing.fakes import MemoryHost, completed

PLAIN = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/site/www"))
OWN = Certificate(file=PurePosixPath("/own/certificate.pem"), key=PurePosixPath("/own/key.pem"))
SITES = {
    HTTP1: PLAIN,
    TLS: replace(PLAIN, certificate=OWN),
    H2: replace(PLAIN, protocol=H2, certificate=OWN),
    H2C: replace(PLAIN, protocol=H2C),
}
OF_TLS = {
    "ssl_session_cache": 1024,
    "ssl_session_timeout": 60,
    "ssl_session_tickets": False,
    "ssl_buffer_size": 4096,
}
OF_HTTP2 = {"http2_max_concurrent_streams": 200, "http2_chunk_size": 4096}
APACHES = (Apache(), ApacheWorker(), ApacheMpm())


def text_of(files: Files) -> str:
    (content,) = files.values()
    return content.decode()


def nginx(site: Site, config: Config | None = None, version: tuple[int, ...] = (1, 22, 1)) -> str:
    return write_configuration(config or {}, site, Facts(version=version))


@pytest.mark.parametrize(
    ("site", "version", "listen", "more"),
    [
        (HTTP1, (1, 22, 1), "8080 default_server", False),
        (TLS, (1, 22, 1), "8080 ssl default_server", False),
        (H2, (1, 22, 1), "8080 ssl http2 default_server", False),
        (H2C, (1, 22, 1), "8080 http2 default_server", False),
        (H2, (1, 25, 1), "8080 ssl default_server", True),
        (H2C, (1, 26, 0), "8080 default_server", True),
    ],
)
def test_nginx_listens_in_the_words_of_its_version(site, version, listen, more):
    text = nginx(SITES[site], version=version)

    assert f"listen {listen};" in text
    assert ("http2 on;" in text) is more
    assert ("ssl_certificate /own/certificate.pem;" in text) is (site in {TLS, H2})


def test_nginx_says_nothing_of_protocols_that_it_does_not_speak():
    config = {**OF_TLS, **OF_HTTP2}

    assert not re.search("ssl|http2", nginx(PLAIN, config))
    assert "http2_chunk_size 4096;" in nginx(SITES[H2C], config)
    assert "ssl_session_cache" not in nginx(SITES[H2C], config)
    assert "ssl_session_cache shared:tuner:1024k;" in nginx(SITES[TLS], config)
    assert "http2_" not in nginx(SITES[TLS], config)


def test_nginx_compresses_as_packaged_unless_a_configuration_says_otherwise():
    assert nginx(PLAIN).count("gzip on;") == 1
    assert "gzip on;" not in nginx(PLAIN, {"gzip": False})
    assert nginx(PLAIN, {"gzip": False}).count("gzip off;") == 1


@pytest.mark.parametrize("server", APACHES, ids=lambda server: server.name)
def test_apache_loads_the_modules_of_what_it_speaks_and_says_nothing_of_the_others(server):
    config = {"SSLSessionCache": 65536, "H2MaxWorkers": 64}
    texts = {name: text_of(server.render(config, site, Facts())) for name, site in SITES.items()}

    assert {name: "mod_ssl.so" in text for name, text in texts.items()} == {
        HTTP1: False, TLS: True, H2: True, H2C: False,
    }  # fmt: skip
    assert {name: "mod_http2.so" in text for name, text in texts.items()} == {
        HTTP1: False, TLS: False, H2: True, H2C: True,
    }  # fmt: skip
    for text in texts.values():
        assert ("H2MaxWorkers 64" in text) is ("mod_http2.so" in text)
        assert ("Protocols h2 h2c http/1.1" in text) is ("mod_http2.so" in text)
        assert ('SSLSessionCache "shmcb:/site/ssl_scache(65536)"' in text) is ("mod_ssl.so" in text)
        assert ('SSLCertificateFile "/own/certificate.pem"' in text) is ("mod_ssl.so" in text)


def test_apache_without_a_session_cache_says_so():
    text = text_of(Apache().render({"SSLSessionCache": 0}, SITES[TLS], Facts()))

    assert 'SSLSessionCache "none"' in text


@pytest.mark.parametrize("site", [H2, H2C])
@pytest.mark.parametrize(("server", "config"), [(ApachePrefork(), {}), (ApacheMpm(), {"MPM": "prefork"})])
def test_the_module_that_prefork_forbids_is_named(server: Server, config: Config, site: str):
    with pytest.raises(
        ConfigRejected, match="mod_http2 serves no HTTP/2 under prefork, and the load speaks h2"
    ):
        server.render(config, SITES[site], Facts())


def test_prefork_speaks_tls():
    assert "SSLEngine on" in text_of(ApachePrefork().render({}, SITES[TLS], Facts()))


@pytest.mark.parametrize("site", SITES)
def test_h2o_has_a_certificate_where_it_speaks_tls(site):
    written = yaml.safe_load(text_of(H2o().render({}, SITES[site], Facts())))
    wanted = {
        "certificate-file": "/own/certificate.pem", "key-file": "/own/key.pem", "ocsp-update-interval": 0,
    }  # fmt: skip

    assert written["listen"] == {"port": 8080, **({"ssl": wanted} if site in {TLS, H2} else {})}


def test_h2o_writes_how_sessions_are_taken_up_again():
    text = text_of(H2o().render({"ssl-session-resumption": "ticket"}, SITES[TLS], Facts()))

    assert yaml.safe_load(text)["ssl-session-resumption"] == {"mode": "ticket"}
    with pytest.raises(ConfigRejected, match="'everything' is none of off, cache, ticket, all"):
        H2o().render({"ssl-session-resumption": "everything"}, SITES[TLS], Facts())


INFO = f"LoadModule info_module {DEBIAN.modules}/mod_info.so"
DUMPED = f"apache2 -t -f /site/{APACHE_FILE} -C {INFO} -D DUMP_CONFIG"
OF_APACHE = {
    "SSLSessionCache": 65536, "SSLSessionCacheTimeout": 60, "SSLSessionTickets": True,
    "H2MinWorkers": 3, "H2CopyFiles": False,
}  # fmt: skip


@pytest.mark.parametrize("site", SITES)
def test_nginx_reads_of_tls_and_http2_what_is_spoken(site):
    config = {**OF_TLS, **OF_HTTP2}
    facts = Facts(version=(1, 22, 1), program=PurePosixPath("nginx"))
    host = RecordedHost(commands={f"nginx -T -c /site/{NGINX_FILE}": nginx(SITES[site], config)}, files={})

    found = of_nginx.read_printed(host, config, facts, SITES[site])

    spoken = {**(OF_TLS if site in {TLS, H2} else {}), **(OF_HTTP2 if site in {H2, H2C} else {})}
    assert found == spoken


def test_nginx_says_what_of_tls_is_not_given_or_another():
    printed = nginx(SITES[TLS], {"ssl_session_cache": 0, "ssl_session_tickets": True})
    host = RecordedHost(commands={f"nginx -T -c /site/{NGINX_FILE}": printed}, files={})

    found = of_nginx.read_printed(host, OF_TLS, Facts(program=PurePosixPath("nginx")), SITES[TLS])

    assert found == {
        "ssl_session_cache": 0, "ssl_session_tickets": True,
        "ssl_session_timeout": of_nginx.MISSING, "ssl_buffer_size": of_nginx.MISSING,
    }  # fmt: skip


@pytest.mark.parametrize("site", SITES)
def test_apache_reads_of_tls_and_http2_what_is_spoken(site):
    printed = """\
#  13:
SSLSessionCache "shmcb:/site/ssl_scache(65536)"
#  14:
SSLSessionCacheTimeout 60
#  15:
SSLSessionTickets On
#  16:
H2MinWorkers 3
#  17:
H2CopyFiles Off
"""
    host = RecordedHost(commands={DUMPED: printed}, files={})

    found = of_apache.read_printed(host, OF_APACHE, Facts(program=PurePosixPath("apache2")), SITES[site])

    spoken = (*(["SSL"] if site in {TLS, H2} else []), *(["H2"] if site in {H2, H2C} else []))
    assert found == {name: value for name, value in OF_APACHE.items() if name.startswith(tuple(spoken))}


def test_apache_says_what_of_tls_is_not_given_or_another():
    host = RecordedHost(commands={DUMPED: 'SSLSessionCache "none"\nSSLSessionTickets Off\n'}, files={})
    config = {name: value for name, value in OF_APACHE.items() if name.startswith("SSL")}

    found = of_apache.read_printed(host, config, Facts(program=PurePosixPath("apache2")), SITES[TLS])

    assert found == {"SSLSessionCache": 0, "SSLSessionCacheTimeout": "", "SSLSessionTickets": False}


def nginx_built_with(*modules: str) -> Facts:
    printed = (
        f"nginx version: nginx/1.22.1\nconfigure arguments: {' '.join(f'--with-{each}' for each in modules)}"
    )
    return Nginx().detect(MemoryHost(commands={"nginx": lambda *_: completed(stderr=printed.encode())}))


def test_an_nginx_without_a_module_names_it():
    whole = nginx_built_with("http_ssl_module", "http_v2_module")
    bare = nginx_built_with("http_ssl_module")

    assert whole.offers == {TLS: "", H2: "", H2C: ""}
    assert bare.offers[TLS] == ""
    assert "built without http_v2_module" in bare.offers[H2]
    assert bare.offers[H2C].endswith("Name the path of another build: `program:`")


def apache_with(server: ApacheMpm, *modules: str) -> Facts:
    listed = "\n".join(f"mod_{each}.so" for each in modules)
    host = MemoryHost(
        commands={
            "apache2": lambda *_: completed(stdout=b"Server version: Apache/2.4.71 (Debian)\n"),
            "ls": lambda *_: completed(stdout=listed.encode()),
        }
    )
    return server.detect(host)


def test_an_apache_without_a_module_names_it():
    whole = apache_with(Apache(), "ssl", "socache_shmcb", "http2")
    bare = apache_with(Apache(), "http2")

    assert whole.offers == {TLS: "", H2: "", H2C: ""}
    assert bare.offers[H2C] == ""
    assert bare.offers[TLS] == (
        "mod_socache_shmcb.so and mod_ssl.so cannot be found in /modules. Use a build that has it, by its "
        "path: `program:`"
    )


def test_prefork_offers_tls_and_says_why_it_offers_no_http2():
    offers = apache_with(ApachePrefork(), "ssl", "socache_shmcb", "http2").offers

    assert offers[TLS] == ""
    assert offers[H2].startswith("mod_http2 serves no HTTP/2 under prefork. Use a server with another MPM")


def study_of(tmp_path, load: str):
    path = tmp_path / "study.yaml"
    path.write_text(f"study: test\nservers: [front]\nspace: [nginx]\nload: {load}\n")
    return load_study(path)


def test_what_a_server_cannot_be_loaded_with_is_refused_before_anything_runs(tmp_path):
    bare = Facts(offers={TLS: "", H2: "mod_http2.so cannot be found. Install it"})

    require_offer(study_of(tmp_path, "{}"), "front", Facts())
    require_offer(study_of(tmp_path, "{tls: true}"), "front", bare)
    with pytest.raises(
        TargetError, match=r"front: this server cannot serve HTTP/2 over TLS: mod_http2\.so cannot"
    ):
        require_offer(study_of(tmp_path, "{protocol: h2}"), "front", bare)
    with pytest.raises(
        UsageError, match=r"speaks no HTTP/2 in the clear; it speaks HTTP/1\.1 in the clear, HTTP/1"
    ):
        require_offer(study_of(tmp_path, "{protocol: h2c}"), "front", bare)
    with pytest.raises(UsageError, match=r"speaks no HTTP/1\.1 over TLS; it speaks HTTP/1\.1 in the clear\."):
        require_offer(study_of(tmp_path, "{tls: true}"), "front", Facts())
