from pathlib import PurePosixPath

from tuner.deploy.application import Application
from tuner.ports import Facts, Site

SITE = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/www"), port=9001)


def test_an_application_is_told_its_port_and_the_folder_of_its_study():
    application = Application(command=("node", "{folder}/a.js", "--port={port}", "{other}"), folder="/x y")

    assert application.start(SITE, Facts()) == ("node", "/x y/a.js", "--port=9001", "{other}")
