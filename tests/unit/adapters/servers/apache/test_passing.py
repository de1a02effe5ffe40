"""Which program answers a request that reaches an installed Apache."""

import pytest

from tests.unit.adapters.servers.apache.layouts import DEBIAN, find, host_of, with_file
from tuner.adapters.servers.apache import Apache
from tuner.ports import SentRequest

SITE = "/etc/apache2/sites-enabled/000-default.conf"
PACKAGED = """\
<FilesMatch ".+[.]ph(?:ar|p|tml)$">
    SetHandler "proxy:unix:/run/php/php8.2-fpm.sock|fcgi://localhost"
</FilesMatch>
"""
SITES = """\
<VirtualHost *:80>
    ServerName first.example
</VirtualHost>
<VirtualHost *:80>
    ServerName shop.example:80
    ServerAlias *.shop.example
    ProxyPass /static/ !
    ProxyPassMatch "^/(.*[.]php)$" "fcgi://127.0.0.1:9000/srv/shop/$1"
</VirtualHost>
<VirtualHost 192.0.2.1:80 [2001:db8::1]:80>
    DocumentRoot /srv/wiki
    Alias /blog /srv/blog
    <Directory /srv/blog>
        SetHandler "proxy:fcgi://localhost:9001/"
    </Directory>
    <Location "/api">
        ProxyPass "unix:/run/php/api.sock|fcgi://api/srv/api"
    </Location>
</VirtualHost>
<VirtualHost _default_:8080>
    ProxyPass / balancer://programs/
</VirtualHost>
<Proxy balancer://programs>
    BalancerMember fcgi://10.0.0.1:9000
    BalancerMember fcgi://10.0.0.2:9000
</Proxy>
"""
USUAL = ("unix:/run/php/php8.2-fpm.sock",)


@pytest.mark.parametrize(
    ("address", "host", "path", "expected"),
    [
        ("127.0.0.1:80", "first.example", "/index.php", USUAL),
        ("127.0.0.1:80", "first.example", "/", USUAL),
        ("127.0.0.1:80", "other.example", "/posts/7", USUAL),
        ("127.0.0.1:80", "shop.example", "/index.php?a=b", ("127.0.0.1:9000",)),
        ("127.0.0.1:80", "www.SHOP.example", "/", ("127.0.0.1:9000",)),
        ("192.0.2.1:80", "shop.example", "/index.php", USUAL),
        ("2001:db8::1:80", "shop.example", "/blog/index.php", ("localhost:9001",)),
        ("192.0.2.1:80", "x", "/api/7", ("unix:/run/php/api.sock",)),
        ("127.0.0.1:8080", "x", "/", ("10.0.0.1:9000", "10.0.0.2:9000")),
    ],
)
def test_the_program_behind_a_page_is_found(address: str, host: str, path: str, expected: tuple[str, ...]):
    layout = with_file(DEBIAN, SITE, PACKAGED + SITES)
    place, _, port = address.rpartition(":")
    sent = SentRequest(scheme="http", addresses=(place,), port=int(port), host=host, path=path)

    assert Apache().aim(host_of(layout), find(layout), [sent]).passes_to == expected


def test_a_server_that_answers_itself_has_no_program():
    sent = SentRequest(scheme="http", addresses=("127.0.0.1",), port=80, host="x", path="/index.html")

    assert Apache().aim(host_of(DEBIAN), find(DEBIAN), [sent]).passes_to == ()
