"""Write an Apache configuration: the packaged one of Debian 12, with the settings of a configuration in it.

The fixed parts are those of /etc/apache2 (apache2 2.4.71-1~deb12u1) that every request passes: the modules
that are enabled, sections, filters, BrowserMatch, log formats. Tables that only a directory listing or a
language reads (AddIcon, AddLanguage, AddCharset) are left out, as is what only missing modules use.
"""

from collections.abc import Iterator, Mapping

from tuner.adapters.servers.apache import protocols
from tuner.adapters.servers.apache.backend import (
    BUFFER,
    OF_BACKEND,
    modules_for,
    write_backend,
)
from tuner.adapters.servers.apache.builds import build_of
from tuner.adapters.servers.apache.mpm import DIRECTIVES, MPMS, SETTING
from tuner.adapters.servers.apache.settings import DEFAULTS, OF_MODULES, WORDS, write_value
from tuner.adapters.servers.apache.syntax import quote
from tuner.errors import ConfigRejected
from tuner.kit.values import require_known
from tuner.ports import Config, Facts, Scalar, Site

CONFIG_FILE = "apache2.conf"

# ls /etc/apache2/mods-enabled of a new installation, but for its MPM.
PACKAGED_MODULES = (
    "access_compat", "alias", "auth_basic", "authn_core", "authn_file", "authz_core", "authz_host",
    "authz_user", "autoindex", "deflate", "dir", "env", "filter", "mime", "negotiation",
    "reqtimeout", "setenvif", "status",
)  # fmt: skip

# A value of each setting, of the kind that it takes.
_KNOWN: Mapping[str, Scalar] = {
    **DEFAULTS,
    **{name: value for name, (_, value) in OF_MODULES.items()},
    **{name: words[0] for name, words in WORDS.items()},
    **protocols.SSL_SETTINGS,
    **protocols.HTTP2_SETTINGS,
    **OF_BACKEND,
}
_WRITTEN_ELSEWHERE = frozenset(
    {"CustomLog", "RequestReadTimeout", "AcceptFilter", "ListenCoresBucketsRatio", "SSLSessionCache"}
)
_OF_BACKEND = OF_BACKEND.keys() - {BUFFER}

_SITE = """\
ServerRoot "{directory}"
DefaultRuntimeDir "{directory}"
PidFile "{directory}/apache2.pid"
User {user}
Group {group}
# Without it the start asks DNS for the machine's name (AH00558).
ServerName localhost
HostnameLookups Off
ErrorLog "{error_log}"
LogLevel warn
{modules}
Listen {port}
{protocols}{directives}

<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all denied
</Directory>
<Directory "/usr/share">
    AllowOverride None
    Require all granted
</Directory>
<Directory "{document_root}">
    Options Indexes FollowSymLinks
    AllowOverride None
    Require all granted
</Directory>
AccessFileName .htaccess
<FilesMatch "^\\.ht">
    Require all denied
</FilesMatch>
Alias /icons/ "/usr/share/apache2/icons/"
<Directory "/usr/share/apache2/icons">
    Options FollowSymlinks
    AllowOverride None
    Require all granted
</Directory>
<Location /server-status>
    SetHandler server-status
    Require local
</Location>
ServerTokens OS
ServerSignature On
TraceEnable Off

TypesConfig {types}
AddType application/x-compress .Z
AddType application/x-gzip .gz .tgz
AddType application/x-bzip2 .bz2
AddType text/html .shtml
AddHandler type-map var
DirectoryIndex index.html index.cgi index.pl index.php index.xhtml index.htm
IndexOptions FancyIndexing VersionSort HTMLTable NameWidth=* DescriptionWidth=* Charset=UTF-8
IndexIgnore .??* *~ *# RCS CVS *,v *,t
LanguagePriority en ca cs da de el eo es et fr he hr it ja ko ltz nl nn no pl pt pt-BR ru sv tr zh-CN zh-TW
ForceLanguagePriority Prefer Fallback
AddOutputFilterByType DEFLATE text/html text/plain text/xml text/css text/javascript
AddOutputFilterByType DEFLATE application/x-javascript application/javascript application/ecmascript
AddOutputFilterByType DEFLATE application/rss+xml
AddOutputFilterByType DEFLATE application/wasm
AddOutputFilterByType DEFLATE application/xml
BrowserMatch "Mozilla/2" nokeepalive
BrowserMatch "MSIE 4\\.0b2;" nokeepalive downgrade-1.0 force-response-1.0
BrowserMatch "RealPlayer 4\\.0" force-response-1.0
BrowserMatch "Java/1\\.0" force-response-1.0
BrowserMatch "JDK/1\\.0" force-response-1.0
BrowserMatch "Microsoft Data Access Internet Publishing Provider" redirect-carefully
BrowserMatch "MS FrontPage" redirect-carefully
BrowserMatch "^WebDrive" redirect-carefully
BrowserMatch "^WebDAVFS/1\\.[012]" redirect-carefully
BrowserMatch "^gnome-vfs/1\\.0" redirect-carefully
BrowserMatch "^gvfs/1" redirect-carefully
BrowserMatch "^XML Spy" redirect-carefully
BrowserMatch "^Dreamweaver-WebDAV-SCM1" redirect-carefully
BrowserMatch " Konqueror/4" redirect-carefully

LogFormat "%v:%p %h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" vhost_combined
LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
LogFormat "%h %l %u %t \\"%r\\" %>s %O" common
CustomLog "{directory}/other_vhosts_access.log" vhost_combined

<VirtualHost *:{port}>
    ServerAdmin webmaster@localhost
    DocumentRoot "{document_root}"
    ErrorLog "{error_log}"
{certificate}{backend}{custom_log}</VirtualHost>
"""


def write_configuration(config: Config, site: Site, facts: Facts, *, mpm: str) -> str:
    """Write the whole configuration file, for the MPM that the configuration names, or else for `mpm`.

    Raises:
        ConfigRejected: tuner or this MPM does not know a setting, or a value is none of its directive's.
        UsageError: a path would be read as syntax.
    """
    mpm = _choose_mpm(config.get(SETTING, mpm))
    protocols.refuse_forbidden(site, mpm)
    written = {name: _write(name, value, mpm) for name, value in config.items() if name != SETTING}
    words = {name: word for name, word in written.items() if protocols.is_spoken(name, site)}
    directory = quote(site.directory)
    log_format = words.get("CustomLog", "combined")
    custom_log = "" if log_format == "off" else f'    CustomLog "{quote(site.access_log)}" {log_format}\n'
    build = build_of(facts)
    more = (*build.loads, *modules_for(site.backend, words, facts), *protocols.modules_spoken(site))
    wanted = (*sorted((f"mpm_{mpm}", *PACKAGED_MODULES)), *dict.fromkeys(more))
    modules = (module for module in wanted if module not in facts.modules)
    return _SITE.format(
        directory=directory,
        document_root=quote(site.document_root),
        port=site.port,
        error_log=quote(site.error_log),
        user=facts.user or build.users[0],
        group=facts.group or build.users[0],
        types=build.types,
        modules="\n".join(
            f"LoadModule {module}_module {build.modules}/mod_{module}.so" for module in modules
        ),
        protocols=protocols.write_for_server(site),
        directives="\n".join((*_directives(words), *_special_directives(words, site))),
        certificate=protocols.write_for_host(site.certificate),
        custom_log=custom_log,
        backend=write_backend(site.backend, words, facts),
    )


def _choose_mpm(name: Scalar) -> str:
    if name not in MPMS:
        raise ConfigRejected(
            f"apache: {str(name)[:80]!r} is no MPM; known are {', '.join(MPMS)}. Correct the search space."
        )
    return str(name)


def _write(name: str, value: Scalar, mpm: str) -> str:
    own = MPMS[mpm].defaults
    if name in DIRECTIVES and name not in own:
        raise ConfigRejected(f"apache: the {mpm} MPM has no {name}. Remove it from the search space.")
    require_known("apache", name, {*_KNOWN, *own})
    return write_value(name, value, own.get(name, _KNOWN.get(name, 0)))


def _directives(words: Mapping[str, str]) -> Iterator[str]:
    for name, word in words.items():
        if name not in _WRITTEN_ELSEWHERE | _OF_BACKEND:
            yield f"{name} {word}"


def _special_directives(words: Mapping[str, str], site: Site) -> Iterator[str]:
    if words.get("RequestReadTimeout", "On") == "On":
        yield "RequestReadTimeout header=20-40,minrate=500"
        yield "RequestReadTimeout body=10,minrate=500"
    else:
        # Without any line the module's own limits would apply (mod_reqtimeout.c).
        yield "RequestReadTimeout header=0 body=0"
    if "AcceptFilter" in words:
        yield f"AcceptFilter http {words['AcceptFilter']}"
    if words.get("ListenCoresBucketsRatio", "0") != "0":  # 0, its default, is a syntax error when written
        yield f"ListenCoresBucketsRatio {words['ListenCoresBucketsRatio']}"
    if "SSLSessionCache" in words:
        yield protocols.write_session_cache(words["SSLSessionCache"], site)
