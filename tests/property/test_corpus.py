"""Files of a corpus come from strangers: what was written is read again, all else is refused clearly."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.corpus.samples import make_study
from tuner.corpus.corpus_study import CorpusStudy, Shipped, Surroundings, Tried
from tuner.corpus.files import LARGEST_FILE_BYTES, parse_corpus_study, read_corpus, write_corpus_study
from tuner.errors import UsageError

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\[\]-]{0,79}", fullmatch=True)
TEXTS = st.from_regex(r"[A-Za-z0-9 _.,:;()+=<>%#*\[\]-]{0,100}", fullmatch=True)
VALUES = (
    st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(-1e18, 1e18).filter(lambda number: not number.is_integer())
    | TEXTS
)
SETTINGS = st.dictionaries(NAMES, VALUES, max_size=4)
GAINS = st.floats(-20, 20)
STUDIES = st.builds(
    CorpusStudy,
    version=st.just(1),
    id=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    tuner=TEXTS,
    finished=st.dates().map(str),
    metric=TEXTS,
    surroundings=st.builds(
        Surroundings,
        cpu=TEXTS, cores=st.integers(1, 2**16), memory_mib=st.integers(1, 2**40), kernel=TEXTS,
        co_located=st.booleans(), servers=st.dictionaries(NAMES, TEXTS, max_size=3), workload=SETTINGS,
    ),
    defaults=SETTINGS,
    tried=st.lists(
        st.builds(
            Tried, changes=SETTINGS, log_gain=st.none() | GAINS, starts=st.integers(1, 10**6),
            deviation=st.floats(1e-9, 20), is_feasible=st.booleans(),
        ),
        max_size=4,
    ).map(tuple),
    shipped=st.none() | st.builds(Shipped, changes=SETTINGS, log_gain=GAINS, low=GAINS, high=GAINS),
)  # fmt: skip
SAMPLE = make_study()
TEXT = json.dumps(asdict(SAMPLE))


@given(study=STUDIES)
def test_what_was_written_is_read_again(tmp_path_factory, study):
    folder = tmp_path_factory.mktemp("corpus")

    write_corpus_study(study, folder)

    assert read_corpus(folder) == (study,)


@given(content=st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_what_is_no_file_of_a_corpus_is_refused_by_its_name(content):
    with pytest.raises(UsageError, match=r"^stranger\.json: .+\. .+"):
        parse_corpus_study(content, "stranger.json")


@given(end=st.integers(0, len(TEXT) - 1))
def test_what_was_cut_off_is_refused(end):
    with pytest.raises(UsageError, match=r"^stranger\.json: .+\. .+"):
        parse_corpus_study(TEXT[:end].encode(), "stranger.json")


@given(data=st.data())
def test_a_changed_byte_gives_a_study_or_a_clear_refusal(data):
    content = bytearray(TEXT.encode())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))

    try:
        study = parse_corpus_study(bytes(content), "stranger.json")
    except UsageError as error:
        assert str(error).startswith("stranger.json: ")  # noqa: PT017 - both ends are allowed
    else:
        assert isinstance(study, CorpusStudy)


def leaves(node, path=()):
    """Yield the way to every value of a document."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, (*path, key))
    if path:
        yield path


OPEN = ("workload", "defaults", "changes")
HOSTILE = (
    "NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "[" * 5000, '{"a": 1}', "[[1]]",
    '"\\u001b[2J"', '"\\ud800"', '"' + "x" * 10_000 + '"', '"https://user:secret@host/"',
    '"../../etc/passwd"',
)  # fmt: skip


@given(path=st.sampled_from([*leaves(json.loads(TEXT))]), hostile=st.sampled_from(HOSTILE))
def test_no_hostile_value_is_taken_anywhere(path, hostile):
    document = json.loads(TEXT)
    here = document
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = "HOSTILE"
    content = json.dumps(document).replace('"HOSTILE"', hostile)

    # A mapping of settings may hold any setting, such as one that is called a.
    if path[-1] in OPEN and hostile == '{"a": 1}':
        assert parse_corpus_study(content.encode(), "stranger.json")
        return
    with pytest.raises(UsageError, match=r"^stranger\.json: .+\. .+") as refused:
        parse_corpus_study(content.encode(), "stranger.json")
    assert len(str(refused.value)) < 1000
    assert str(refused.value).isprintable()


@given(name=st.sampled_from(["a b", "", "x" * 81, "../x", "a\n", "\u202e", "é", "1a"]))
def test_no_hostile_name_of_a_setting_is_taken(name):
    document = json.loads(TEXT)
    document["defaults"][name] = 1

    with pytest.raises(UsageError, match=r"^stranger\.json: defaults"):
        parse_corpus_study(json.dumps(document).encode(), "stranger.json")


def test_a_file_without_end_is_not_read(tmp_path):
    (tmp_path / "large.json").write_bytes(b" " * (LARGEST_FILE_BYTES + 1))

    with pytest.raises(UsageError, match=r"large\.json: the file is larger than 2 MiB"):
        read_corpus(tmp_path)
