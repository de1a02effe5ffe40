"""The outline of an nginx configuration."""

from tuner.export.nginx_outline import read_outline

TEXT = """\
user www-data; # who
events { worker_connections 768; }
http {
    log_format main '$remote_addr "{;}" ${request}';
    map $host $x { default "a;b"; }
    # sendfile on;
    server {
        listen 80 default_server;
        location ~ \\.php$ { return 404; }
    }
}
"""


def test_directives_are_read_with_the_blocks_around_them() -> None:
    found = [(each.context, each.name) for each in read_outline(TEXT) if each.body_end < 0]

    assert found == [
        ((), "user"),
        (("events",), "worker_connections"),
        (("http",), "log_format"),
        (("http", "map"), "default"),
        (("http", "server"), "listen"),
        (("http", "server", "location"), "return"),
    ]


def test_quotes_and_variables_protect_what_looks_like_syntax() -> None:
    by_name = {each.name: each for each in read_outline(TEXT)}

    assert by_name["log_format"].arguments == ("main", "'$remote_addr \"{;}\" ${request}'")
    assert by_name["default"].arguments == ('"a;b"',)
    assert by_name["location"].arguments == ("~", "\\.php$")


def test_offsets_give_the_text_of_a_directive_back() -> None:
    for each in read_outline(TEXT):
        text = TEXT[each.begin : each.end]
        assert text.startswith(each.name)
        assert text.endswith(";" if each.body_end < 0 else "}")


def test_blocks_come_before_what_they_hold() -> None:
    names = [each.name for each in read_outline(TEXT)]

    assert names.index("http") < names.index("log_format")
    assert names.index("server") < names.index("listen")


def test_a_text_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    for end in range(len(TEXT)):
        assert all(each.end <= end for each in read_outline(TEXT[:end]))
