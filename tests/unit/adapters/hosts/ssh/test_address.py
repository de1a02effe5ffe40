"""Addresses of SSH hosts: what they may be, and that nothing else gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.adapters.hosts.ssh.address import Address, read_address
from tuner.errors import UsageError
from tuner.plugins import make_host

GOOD = {
    "ssh://web1": Address(host="web1"),
    "ssh://web1/": Address(host="web1"),
    "ssh://deploy@web1.example.org:2222": Address(host="web1.example.org", user="deploy", port=2222),
    "ssh://my_alias-3": Address(host="my_alias-3"),
    "ssh://10.0.0.7:22": Address(host="10.0.0.7", port=22),
    "ssh://root@[2001:db8::1]:22": Address(host="2001:db8::1", user="root", port=22),
}
HOSTILE = [
    "", "ssh://", "ssh:///", "ssh://@web", "web", "http://web", "ssh:web",
    "ssh://-oProxyCommand=id", "ssh://web-", "ssh://.web", "ssh://we b", "ssh://web\n", "ssh://web%25h", "ssh://%h",
    "ssh://web;id", "ssh://$(id)", "ssh://`id`", "ssh://web|id", "ssh://web&id", "ssh://'web'", 'ssh://"web"',
    "ssh://web\\", "ssh://web/path", "ssh://web?x", "ssh://web#x", "ssh://*", "ssh://we\0b", "ssh://wéb",
    "ssh://" + "w" * 300,
    "ssh://-l@web", "ssh://a b@web", "ssh://a;b@web", "ssh://$USER@web", "ssh://root\n@web", "ssh://a@b@web",
    "ssh://root:secret@web", "ssh://%r@web", "ssh://" + "u" * 80 + "@web",
    "ssh://web:", "ssh://web:0", "ssh://web:65536", "ssh://web:22x", "ssh://web:-1", "ssh://web:022", "ssh://web:\uff12",
    "ssh://2001:db8::1", "ssh://[2001:db8::1", "ssh://[fe80::1%eth0]", "ssh://[web]", "ssh://[::1]x",
]  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_names_addresses_users_and_ports_are_read(url: str):
    assert read_address(url) == GOOD[url]


@pytest.mark.parametrize("address", GOOD.values(), ids=str)
def test_an_address_is_shown_as_it_is_read(address: Address):
    assert read_address(str(address)) == address


@pytest.mark.parametrize("url", HOSTILE)
def test_what_could_mean_more_is_refused(url: str):
    with pytest.raises(UsageError, match="Write ssh://user@host:port"):
        read_address(url)


def test_a_password_is_refused_and_not_shown():
    with pytest.raises(UsageError, match="an address cannot contain a password") as refused:
        read_address("ssh://root:secret@web")

    assert "secret" not in str(refused.value)


def test_a_host_that_needs_an_address_says_so():
    with pytest.raises(UsageError, match="ssh://user@host:port"):
        make_host("ssh")
    with pytest.raises(UsageError, match="'local://x' is no usable host"):
        make_host("local://x")


@given(st.text(alphabet=st.sampled_from("aZ0._-@:[]/%$;' \n\\é"), max_size=20))
def test_no_text_gives_anything_but_plain_words(text: str):
    try:
        address = read_address(f"ssh://{text}")
    except UsageError:
        return
    for word in (address.host, address.user or "x"):
        assert not word.startswith("-")
        assert not set(word) & set("%$;' \n\\/@é[]")
