"""Apache, sysctl and JSON exports, and what is refused."""

import json
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tests.unit.simulated_study import make_summary
from tuner.adapters.servers.apache.builds import BUILDS, DEBIAN, write_place
from tuner.errors import UsageError
from tuner.export import Rendered, Rewritten, export
from tuner.ports import DropIn
from tuner.study.facts import TOO_NOISY

SITE = PurePosixPath("/run/tuner-export/apache2.conf")
SOMAXCONN = PurePosixPath("/proc/sys/net/core/somaxconn")
PLACE = write_place(DEBIAN, "apache")


def apache(before: str, after: str, place: DropIn = PLACE) -> dict[str, str]:
    rendered = {
        "apache": Rendered(default={SITE: before.encode()}, winner={SITE: after.encode()}, drop_in=place)
    }
    files = export(make_summary(searches=4), "apache", rendered=rendered)
    return {name: content.decode() for name, content in files.items()}


def settings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_apache_fragment_holds_only_what_differs() -> None:
    files = apache("Timeout 300\nThreadsPerChild 25\n", "Timeout 300\nThreadsPerChild 64\nThreadLimit 64\n")

    assert settings(files["tuner-apache.conf"]) == ["ThreadsPerChild 64", "ThreadLimit 64"]
    assert "a2disconf tuner-apache" in files["tuner-apache-undo.sh"]


@pytest.mark.parametrize(
    ("name", "apply", "undo"),
    [
        ("RHEL, Fedora", "cp tuner-apache.conf conf.d/ && httpd -t", "systemctl restart httpd"),
        ("Alpine", "cp tuner-apache.conf /etc/apache2/conf.d/ && httpd -t", "rc-service apache2 restart"),
        ("Arch", "first add `Include conf/extra/tuner-apache.conf` as the last line of ", "-t\n"),
    ],
)
def test_the_apache_fragment_is_put_where_the_build_reads_it(name: str, apply: str, undo: str) -> None:
    (build,) = (each for each in BUILDS if each.name == name)

    files = apache("Timeout 300\n", "Timeout 60\n", write_place(build, "apache"))

    assert apply in files["tuner-apache.conf"]
    assert undo in files["tuner-apache-undo.sh"]
    assert "a2disconf" not in files["tuner-apache-undo.sh"]


def test_what_belongs_to_a_site_is_said_and_not_set() -> None:
    log = 'CustomLog "/run/tuner-export/access.log" combined\n'
    before = f"Timeout 300\n<VirtualHost *:80>\n{log}</VirtualHost>\n"
    text = apache(before, "Timeout 60\n")["tuner-apache.conf"]

    assert settings(text) == ["Timeout 60"]
    assert '# instead of CustomLog "${APACHE_LOG_DIR}/access.log" combined' in text


def test_the_undo_of_kernel_settings_has_the_values_of_the_host() -> None:
    rewritten = Rewritten(before={SOMAXCONN: b"128\n"}, after={SOMAXCONN: b"65535\n"}, service=None)
    files = export(make_summary(searches=4), "sysctl", rendered={"sysctl": rewritten})

    assert settings(files["99-tuner.conf"].decode()) == ["net.core.somaxconn = 65535"]
    assert settings(files["tuner-sysctl-undo.conf"].decode()) == ["net.core.somaxconn = 128"]
    assert "read from this host" in files["tuner-sysctl-undo.conf"].decode()


def test_where_the_host_was_not_read_the_undo_has_the_default_of_the_study() -> None:
    rendered = Rendered(default={SOMAXCONN: b"4096\n"}, winner={SOMAXCONN: b"65535\n"})
    files = export(make_summary(searches=4), "sysctl", rendered={"sysctl": rendered})

    assert settings(files["tuner-sysctl-undo.conf"].decode()) == ["net.core.somaxconn = 4096"]
    assert "the study's default" in files["tuner-sysctl-undo.conf"].decode()


def test_a_key_with_a_dot_in_its_name_is_written_with_slashes() -> None:
    path = PurePosixPath("/proc/sys/net/ipv4/conf/eth0.100/arp_notify")
    rendered = {"sysctl": Rendered(default={path: b"0\n"}, winner={path: b"1\n"})}
    files = export(make_summary(searches=4), "sysctl", rendered=rendered)

    assert settings(files["99-tuner.conf"].decode()) == ["net/ipv4/conf/eth0.100/arp_notify = 1"]


def test_json_names_settings_by_server_with_gain_and_undo() -> None:
    summary = make_summary(searches=4)
    files = export(summary, "json", rendered={})
    applied, undone = (json.loads(files[name]) for name in ("tuner.json", "tuner-undo.json"))

    assert applied["settings"]["nginx"]["sendfile"] is False
    assert undone["settings"]["nginx"]["sendfile"] is True
    assert applied["settings"]["nginx"].keys() == undone["settings"]["nginx"].keys()
    assert summary.gain is not None
    assert applied["gain"]["ratio"] == summary.gain.ratio


def test_json_has_the_effect_of_each_setting_and_no_figure_that_only_the_space_reckons_with() -> None:
    summary = make_summary(searches=4)
    assert summary.explanation is not None
    applied = json.loads(export(summary, "json", rendered={})["tuner.json"])

    (*first, _) = summary.explanation.settings
    assert {setting.parameter for setting in summary.explanation.settings} == applied["effects"].keys()
    for setting in first:
        assert applied["effects"][setting.parameter]["low"] == setting.effect.low
        assert applied["effects"][setting.parameter]["text"].startswith(f"{setting.effect.ratio:.2f}×")


def test_an_unknown_format_names_the_nearest_and_all_in_one_order() -> None:
    with pytest.raises(UsageError, match=r"no format 'ngnix'\. Did you mean nginx\? Known formats: apache, "):
        export(make_summary(searches=4), "ngnix", rendered={})


def test_another_word_for_a_format_names_the_format() -> None:
    for word, meant in {"helm": "kubernetes", "k8s": "kubernetes", "md": "markdown"}.items():
        with pytest.raises(UsageError, match=rf"no format '{word}'\. Did you mean {meant}\?"):
            export(make_summary(searches=4), word, rendered={})


def test_a_study_without_a_winner_has_nothing_to_export() -> None:
    summary = make_summary(searches=4, pairs=0)

    with pytest.raises(UsageError, match=r"no winner to export, the study is stopped\. Finish it with"):
        export(summary, "json", rendered={})
    with pytest.raises(UsageError, match=r"the study is finished\. Nothing is proven to beat the default"):
        export(replace(summary, state="finished"), "json", rendered={})
    noisy = replace(summary, state="finished", stop_reason=f"{TOO_NOISY}, 21 of 21 windows")
    with pytest.raises(UsageError, match=r"ended early on a noisy host\. Finish it with `tuner run`"):
        export(noisy, "json", rendered={})


def test_a_server_that_the_study_does_not_tune_is_refused() -> None:
    rendered = {"nginx": Rendered(default={}, winner={})}
    with pytest.raises(UsageError, match="the study tunes nginx, so there is nothing to export as apache"):
        export(make_summary(searches=4), "apache", rendered=rendered)


def test_an_unproven_gain_is_called_so_in_every_file() -> None:
    summary = make_summary(searches=4)
    assert summary.gain is not None
    reason = "The pairs do not decide: 1.03× [0.97, 1.09]."
    summary = replace(summary, gain=replace(summary.gain, verdict="not proven"), reason=reason)
    files = export(summary, "json", rendered={})
    assert json.loads(files["tuner.json"])["gain"]["verdict"] == "not proven"

    rendered = {
        "apache": Rendered(
            default={SITE: b"Timeout 300\n"},
            winner={SITE: b"Timeout 60\n"},
            drop_in=write_place(DEBIAN, "apache"),
        )
    }
    for content in export(summary, "apache", rendered=rendered).values():
        assert b"(NOT PROVEN)" in content
        assert f"# {reason}\n".encode() in content


def test_a_name_with_a_line_break_cannot_leave_its_comment() -> None:
    hostile = replace(make_summary(searches=4), study="x\nLoadModule evil evil.so", workload="a\r\nb\x1b[31m")
    rendered = {
        "apache": Rendered(
            default={SITE: b"Timeout 300\n"},
            winner={SITE: b"Timeout 60\n"},
            drop_in=write_place(DEBIAN, "apache"),
        )
    }
    files = export(hostile, "apache", rendered=rendered)

    assert settings(files["tuner-apache.conf"].decode()) == ["Timeout 60"]
    assert b"\x1b" not in files["tuner-apache.conf"]
    assert "LoadModule" not in "\n".join(settings(files["tuner-apache-undo.sh"].decode()))
