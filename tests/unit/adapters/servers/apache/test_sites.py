"""Which URLs an installed Apache has, by its virtual hosts."""

from tests.unit.adapters.servers.apache.layouts import DEBIAN, find, with_file

SITE = "/etc/apache2/sites-enabled/000-default.conf"
SITES = """\
<VirtualHost *:80>
    ServerName localhost
</VirtualHost>
<VirtualHost 192.0.2.1:80 [2001:db8::1]:8080>
    ServerName http://Shop.example:80
    ServerAlias *.shop.example
</VirtualHost>
<VirtualHost _default_:443>
    SSLEngine on
    ServerName shop.example
</VirtualHost>
<VirtualHost *>
    ServerName wiki.example
</VirtualHost>
<VirtualHost *:80>
    ServerName 192.0.2.1
</VirtualHost>
"""


def test_virtual_hosts_are_listed_by_their_plain_names():
    found = find(with_file(DEBIAN, SITE, SITES))

    assert found.sites == (
        "http://shop.example/", "http://shop.example:8080/", "https://shop.example/", "http://wiki.example/",
    )  # fmt: skip
