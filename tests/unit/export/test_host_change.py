"""What a winner changes on a host, whatever writes it."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest
import yaml

from tests.unit.simulated_study import make_summary
from tuner.adapters.servers.apache.builds import DEBIAN, write_place
from tuner.errors import TargetError, UsageError
from tuner.export import Rendered, Rewritten, export, write_change
from tuner.export.host_change import SYSCTL_FILE, find_change
from tuner.export.provenance import describe_effects
from tuner.ports import Service

MAIN = PurePosixPath("/etc/nginx/nginx.conf")
SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
NGINX = Service(name="nginx", check=("nginx", "-t"), stop=(), start=(), reload=("nginx", "-s", "reload"))


def of_nginx(before: bytes, after: bytes) -> Rewritten:
    return Rewritten(before={MAIN: before}, after={MAIN: after}, service=NGINX)


def of_kernel(before: bytes, after: bytes) -> Rewritten:
    return Rewritten(before={SOMAXCONN: before}, after={SOMAXCONN: after}, service=None)


def test_a_change_and_its_reverse_are_each_others_reverse() -> None:
    differences = {"nginx": of_nginx(b"a 1;\n", b"a 2;\n"), "sysctl": of_kernel(b"128\n", b"9000\n")}
    change = find_change(make_summary(searches=4), differences).with_boot_files("# head\n")
    back = change.reversed()

    assert back.reversed() == change
    assert {each.path: (each.before, each.after) for each in back.files} == {
        MAIN: (b"a 2;\n", b"a 1;\n"), SYSCTL_FILE: (b"# head\nnet.core.somaxconn = 9000\n", None),
    }  # fmt: skip
    assert [(each.before, each.after) for each in back.settings] == [("9000", "128")]


def test_a_server_is_restarted_for_settings_of_the_kernel_alone() -> None:
    differences = {"nginx": of_nginx(b"a 1;\n", b"a 1;\n"), "sysctl": of_kernel(b"128\n", b"9000\n")}
    change = find_change(make_summary(searches=4), differences)

    assert change.files == ()
    assert [(each.name, each.may_reload) for each in change.services] == [("nginx", False)]


def test_what_is_not_changed_is_not_written_and_names_what_is_left_to_do() -> None:
    listed = Rendered(default={MAIN: b"a 1;\n"}, winner={MAIN: b"a 2;\n"}, reason="it is not installed.")
    with pytest.raises(
        UsageError, match=r"caddy is not changed here \(it is not installed\); see --format caddy"
    ):
        find_change(make_summary(searches=4), {"caddy": listed, "nginx": of_nginx(b"a", b"a")})
    beside = find_change(make_summary(searches=4), {"caddy": listed, "nginx": of_nginx(b"a", b"b")})
    assert beside.notes == ("caddy is not changed here (it is not installed); see --format caddy",)


def test_a_private_server_is_handed_over_by_what_is_installed_beside_it() -> None:
    rendered = Rendered(default={}, winner={}, installed=of_nginx(b"a 1;\n", b"a 2;\n"))

    assert [each.after for each in find_change(make_summary(searches=4), {"nginx": rendered}).files] == [
        b"a 2;\n"
    ]


def test_the_effect_of_settings_is_that_of_the_confirmed_winner_alone() -> None:
    summary = make_summary(searches=4)

    assert len(describe_effects(summary)) == len(summary.changes)
    assert "sendfile on → off: effect 1." in "\n".join(describe_effects(summary))
    assert describe_effects(replace(summary, gain=None)) == []


@pytest.mark.parametrize("name", ["/etc/../../home/me/.profile", "etc/a.conf", "/etc/a\n```\n.conf"])
def test_a_host_cannot_lead_an_export_out_of_its_folder(name: str) -> None:
    changed = Rewritten(before={}, after={PurePosixPath(name): b"a 1;\n"}, service=NGINX)

    with pytest.raises(TargetError, match="tuner exports no file with such a path"):
        export(make_summary(searches=4), "ansible", rendered={"nginx": changed})


def test_names_of_a_host_are_no_templates_for_ansible() -> None:
    hostile = PurePosixPath("/etc/{{ lookup('pipe', 'id') }}.conf")
    changed = Rewritten(before={}, after={hostile: b"a 1;\n"}, service=NGINX)
    files = export(make_summary(searches=4), "ansible", rendered={"nginx": changed})
    text = files["tuner-ansible/roles/tuner/vars/apply.yml"].decode()

    tree = yaml.compose(text, yaml.SafeLoader)
    scalars = [
        token for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken) and "{{" in token.value
    ]
    tags = [token for token in yaml.scan(text) if isinstance(token, yaml.TagToken)]
    assert tree is not None
    assert len(scalars) == len(tags) == 2
    assert {token.value for token in tags} == {("!", "unsafe")}


def test_the_way_back_restarts_a_service_as_its_host_does() -> None:
    changed = of_nginx(b"a 1;\n", b"a 2;\n")
    for service, command in (
        (NGINX, "nginx -t && service nginx restart"),
        (replace(NGINX, is_systemd=True), "nginx -t && systemctl restart nginx"),
    ):
        rendered = {"nginx": replace(changed, service=service)}
        text = export(make_summary(searches=4), "markdown", rendered=rendered)["tuner.md"].decode()

        assert f"\n{command}\n" in text


def test_what_is_pasted_is_a_patch_of_every_file_and_of_the_kernels_at_each_boot() -> None:
    listed = Rendered(default={MAIN: b"a 1;\n"}, winner={MAIN: b"a 2;\n"}, reason="it is not installed.")
    differences = {
        "nginx": of_nginx(b"a 1;\n", b"a 2;\n"), "sysctl": of_kernel(b"128\n", b"9000\n"), "caddy": listed,
    }  # fmt: skip

    assert write_change(make_summary(searches=4), differences) == (
        "--- a/etc/nginx/nginx.conf\n+++ b/etc/nginx/nginx.conf\n@@ -1 +1 @@\n-a 1;\n+a 2;\n"
        "--- /dev/null\n+++ b/etc/sysctl.d/99-tuner.conf\n@@ -0,0 +1 @@\n+net.core.somaxconn = 9000\n"
        "# tuner-caddy-settings.conf\n# was: a 1;\na 2;\n"
    )


def test_what_is_pasted_has_one_line_around_each_change_and_what_has_to_be_done_by_hand() -> None:
    before = b"".join(b"line %d;\n" % number for number in range(9))
    rewritten = of_nginx(before, before.replace(b"line 4", b"best 4"))

    text = write_change(
        make_summary(searches=4), {"nginx": replace(rewritten, by_hand={"jit": "set it in php.ini"})}
    )

    assert text == (
        "--- a/etc/nginx/nginx.conf\n+++ b/etc/nginx/nginx.conf\n"
        "@@ -4,3 +4,3 @@\n line 3;\n-line 4;\n+best 4;\n line 5;\n"
        "# CHANGE BY HAND, as the gain was measured with these settings, too:\n#   jit (set it in php.ini)\n"
    )


def test_where_no_installed_file_is_changed_the_export_of_the_server_is_pasted() -> None:
    main = PurePosixPath("/run/tuner-export/apache2.conf")
    log = b'CustomLog "/run/tuner-export/access.log" combined\n'
    rendered = Rendered(
        default={main: log}, winner={main: b"ThreadsPerChild 64\n"}, drop_in=write_place(DEBIAN, "apache")
    )

    text = write_change(make_summary(searches=4), {"apache": rendered})

    assert text.startswith("# tuner-apache.conf\nThreadsPerChild 64\n#\n# change these lines by hand")
    assert "found by tuner" not in text
