from pathlib import PurePosixPath

import pytest

from tuner.deploy.certificate import make_certificate
from tuner.errors import TargetError
from tuner.ports import Certificate
from tuner.testing.fakes import MemorySandbox, completed

FOLDER = PurePosixPath("/sandbox/certificate")


def test_key_and_certificate_are_the_sandboxes_own():
    sandbox = MemorySandbox(commands={"openssl": lambda *_: completed()})

    made = make_certificate(sandbox)

    assert made == Certificate(file=FOLDER / "certificate.pem", key=FOLDER / "key.pem")
    (argv,) = sandbox.ran
    assert argv[argv.index("-keyout") + 1] == str(made.key)
    assert argv[argv.index("-out") + 1] == str(made.file)
    settings = sandbox.read(PurePosixPath(argv[argv.index("-config") + 1])).content or b""
    assert b"IP:127.0.0.1" in settings


def test_without_openssl_the_package_is_named():
    with pytest.raises(TargetError, match=r"openssl is needed to make .*apt-get install openssl"):
        make_certificate(MemorySandbox())


def test_a_failure_is_told_in_the_words_of_openssl():
    failed = completed(returncode=1, stderr=b"-----\nunable to write key\n40E7:error: no space\n")
    sandbox = MemorySandbox(commands={"openssl": lambda *_: failed})

    with pytest.raises(TargetError, match=r"\(status 1\): unable to write key / 40E7:error: no space"):
        make_certificate(sandbox)
