from pathlib import PurePosixPath

from tuner.deploy.application import Application
from tuner.deploy.arrangement import find_application
from tuner.ports import Facts, Site
from tuner.study import load_study
from tuner.testing.fakes import MemoryHost

SITE = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/www"), port=9001)


def test_an_application_is_told_its_port_and_the_folder_of_its_study():
    application = Application(command=("node", "{folder}/a.js", "--port={port}", "{other}"), folder="/x y")

    assert application.start(SITE, Facts()) == ("node", "/x y/a.js", "--port=9001", "{other}")


def test_files_beside_the_study_are_found_as_a_shell_there_finds_them(tmp_path):
    for name in ("app.py", "python3", "run/serve"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    started = []
    for command in ("[python3, app.py, '{port}']", "[./run/serve, /etc/hosts, other.py, '{port}']"):
        (tmp_path / "study.yaml").write_text(
            "study: a\nservers: [nginx]\nspace: [nginx]\nload: {path: /}\n"
            f"backend: {{command: {command}}}\n"
        )
        (application,) = find_application(load_study(tmp_path / "study.yaml")).values()
        started.append(application.start(SITE, application.detect(MemoryHost())))

    assert started == [
        ("python3", f"{tmp_path}/app.py", "9001"),
        (f"{tmp_path}/./run/serve", "/etc/hosts", "other.py", "9001"),
    ]
