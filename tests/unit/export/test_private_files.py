"""A file that not everybody may read stays so, whichever format holds it."""

import json
from pathlib import PurePosixPath

import pytest
import yaml

from tests.unit.simulated_study import make_summary
from tuner.export import Rewritten, export
from tuner.export.formats import FORMATS
from tuner.ports import Service

MAIN, SITE, NEW = map(PurePosixPath, ("/etc/web/main.conf", "/etc/web/my site.conf", "/etc/web/new.conf"))
SECRET = b"password = secret\n"
WEB = Service(name="web", check=("web", "-t"), stop=(), start=(), reload=None)


def write(form: str, *, mode: int) -> dict[str, bytes]:
    changed = Rewritten(
        before={MAIN: SECRET + b"a 1\n", SITE: b"b 1\n"},
        after={MAIN: SECRET + b"a 2\n", SITE: b"b 2\n", NEW: b"c 2\n"},
        modes={MAIN: mode, SITE: 0o644},
        service=WEB,
    )
    assert changed.private == ({MAIN} if mode == 0o600 else set())
    return export(make_summary(searches=4), form, rendered={"web": changed})


def test_cloud_init_writes_each_file_with_its_mode() -> None:
    document = yaml.safe_load(write("cloud-init", mode=0o600)["tuner-cloud-config.yaml"])

    assert {each["path"]: each["permissions"] for each in document["write_files"]} == {
        str(MAIN): "0600", str(SITE): "0644", str(NEW): "0644",
    }  # fmt: skip


def test_an_image_has_each_file_with_its_mode() -> None:
    text = write("dockerfile", mode=0o600)["tuner-dockerfile/Dockerfile"].decode()

    copied = {line.rpartition("[")[0] for line in text.splitlines() if line.startswith("COPY")}
    assert copied == {"COPY --chmod=0600 ", "COPY "}
    assert json.dumps([f"tuner-dockerfile/files{SITE}", str(SITE)]) in text


@pytest.mark.parametrize(
    ("mode", "kind", "text"), [(0o600, "Secret", "stringData"), (0o644, "ConfigMap", "data")]
)
def test_kubernetes_keeps_it_in_a_secret(mode: int, kind: str, text: str) -> None:
    files = write("kubernetes", mode=mode)
    held = yaml.safe_load(files[f"tuner-kubernetes/{kind.lower()}.yaml"])
    (volume,) = yaml.safe_load(files["tuner-kubernetes/patch.yaml"])["spec"]["template"]["spec"]["volumes"]

    assert (held["kind"], len(held[text])) == (kind, 3)
    assert "etc.web.my_site.conf" in held[text]
    assert (
        f"tuner-kubernetes/{kind.lower()}.yaml && kubectl patch"
        in files["tuner-kubernetes/patch.yaml"].decode()
    )
    if kind == "Secret":
        modes = {each["key"]: each["mode"] for each in volume["secret"]["items"]}
        assert modes["etc.web.main.conf"] == 0o600


def test_the_page_for_a_pull_request_does_not_show_it() -> None:
    text = write("markdown", mode=0o600)["tuner.md"].decode()

    assert "password" not in text
    assert "/etc/web/main.conf: not shown, because not every user may read this file" in text
    assert "+b 2" in text


def test_files_whose_names_differ_in_a_slash_alone_have_keys_of_their_own() -> None:
    paths = [PurePosixPath(each) for each in ("/etc/a/b", "/etc/a.b", "/etc/a b", "/etc/a_b")]
    changed = Rewritten(before={}, after={path: str(path).encode() for path in paths}, service=None)
    files = export(make_summary(searches=4), "kubernetes", rendered={"web": changed})
    data = yaml.safe_load(files["tuner-kubernetes/configmap.yaml"])["data"]
    pod = yaml.safe_load(files["tuner-kubernetes/patch.yaml"])["spec"]["template"]["spec"]

    mounts = pod["containers"][0]["volumeMounts"]
    assert {each["mountPath"]: data[each["subPath"]] for each in mounts} == {
        str(path): str(path) for path in paths
    }


@pytest.mark.parametrize("form", [*FORMATS, "nginx", "json"])
def test_no_sign_of_a_host_turns_the_direction_of_writing(form: str) -> None:
    turning = "\u202egnp.exe\u2066"
    changed = Rewritten(
        before={MAIN: b"a 1\n"}, after={MAIN: b"a 2\n"}, service=WEB, by_hand={turning: turning}
    )
    summary = make_summary(searches=4, study=f"nginx {turning}")

    for content in export(summary, form, rendered={"nginx": changed}).values():
        assert not set(turning) & set("\u202e\u2066") & set(content.decode())


def test_what_a_file_holds_is_escaped_where_it_stands_in_a_document() -> None:
    content = "# \u202ekcab\n# \u00fc\na 2\n".encode()
    changed = Rewritten(before={MAIN: b"a 1\n"}, after={MAIN: content}, service=WEB)
    files = {
        form: export(make_summary(searches=4), form, rendered={"web": changed})
        for form in ("cloud-init", "kubernetes", "markdown")
    }

    texts = [text.decode() for each in files.values() for text in each.values()]
    assert not any("\u202e" in text for text in texts)
    document = yaml.safe_load(files["cloud-init"]["tuner-cloud-config.yaml"])
    assert document["write_files"][0]["content"].encode() == content


def test_a_config_map_has_another_name_when_its_content_changes() -> None:
    def name_of(files: dict[str, bytes]) -> str:
        held = yaml.safe_load(files["tuner-kubernetes/configmap.yaml"])
        (volume,) = yaml.safe_load(files["tuner-kubernetes/patch.yaml"])["spec"]["template"]["spec"][
            "volumes"
        ]
        assert volume["configMap"]["name"] == held["metadata"]["name"]
        return str(held["metadata"]["name"])

    changed = Rewritten(before={SITE: b"b 1\n"}, after={SITE: b"b 3\n"}, modes={SITE: 0o644}, service=WEB)
    other = export(make_summary(searches=4), "kubernetes", rendered={"web": changed})

    assert name_of(write("kubernetes", mode=0o644)) == name_of(write("kubernetes", mode=0o644))
    assert name_of(write("kubernetes", mode=0o644)) != name_of(other)
