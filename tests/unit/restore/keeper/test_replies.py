import pytest

from tuner.errors import ConfigRejected, RestoreFailed, TargetError
from tuner.restore.keeper import replies
from tuner.testing.fakes import completed


def test_what_is_not_back_is_told_with_its_reason():
    printed = b"back\t/etc/a\ntrouble\t/etc/b c\tit is immutable\ntrouble\tnginx\tit does not start: no\n"

    with pytest.raises(
        RestoreFailed, match=r"web1: .*: /etc/b c \(it is immutable\); nginx \(it does .*tuner restore"
    ):
        replies.read_reply("web1", completed(returncode=replies.INCOMPLETE, stdout=printed))


@pytest.mark.parametrize(
    ("returncode", "error", "told"),
    [
        (1, TargetError, "web1: sudo: a password is required"),
        (127, TargetError, "web1: the restore agent is missing at /var/lib/tuner/keeper"),
        (replies.ENDED, TargetError, "web1: sudo: a password"),
        (replies.REJECTED, ConfigRejected, "web1: sudo: a password"),
    ],
)
def test_an_exit_status_says_whose_fault_it_is(returncode: int, error: type[Exception], told: str):
    with pytest.raises(error, match=told):
        replies.read_reply("web1", completed(returncode=returncode, stderr=b"sudo: a password is required\n"))


def test_a_keeper_that_hangs_is_no_success():
    with pytest.raises(TargetError, match="did not end within"):
        replies.read_reply("web1", completed(returncode=-9, timed_out=True))


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"back\t/etc/a\n",
        b"end\t2",  # a last line that was cut is no last line, whatever it holds
        b"end\t2\nback\t/etc/a\n",
        b"end\t1\n",
        b" end\t2\n",
        b"back\tend\t2\n",
        b"\xff\x00\n",
    ],
)
def test_only_an_answer_with_its_last_line_is_a_success(printed: bytes):
    answered = completed(stdout=printed)

    with pytest.raises(TargetError, match=r"web1: the restore agent .* its answer has no end"):
        replies.read_reply("web1", answered)

    assert replies.needs_installation(answered)
    assert replies.read_reply("web1", completed(stdout=b"back\t/etc/a\nend\t2\n"))["back"] == ["/etc/a"]


@pytest.mark.parametrize(
    "told",
    [b"", b"0", b"check\t", b"check\t-1", b"check\t1e3", "check\t²".encode(), b"check\t9999", b"other\t0"],
)
def test_an_end_of_a_command_that_makes_no_sense_is_the_targets_fault(told: bytes):
    answered = completed(stdout=b"ran\t%b\nend\t2\n" % told)

    with pytest.raises(TargetError, match="of the restore agent has no exit status"):
        replies.read_activation("web1", answered, {"check": ("nginx", "-t")})


def test_what_a_service_answers_is_read_as_if_it_had_been_run_by_itself():
    printed = b"ran\tcheck\t1\nout\tone\nout\ttwo\nerr\t[emerg] \xff\nend\t2\n"
    answered = completed(returncode=replies.SERVICE_FAILED, stdout=printed)

    ran = replies.read_activation("web1", answered, {"check": ("nginx", "-t")})

    assert (ran.argv, ran.returncode) == (("nginx", "-t"), 1)
    assert (ran.stdout, ran.stderr) == (b"one\ntwo\n", b"[emerg] \xff\n")
