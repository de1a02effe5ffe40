import pytest

from tuner.errors import UsageError
from tuner.space.yaml_text import LARGEST_FILE_BYTES, Document, Plain, read_yaml


def test_every_key_and_item_knows_its_line():
    document = read_yaml(b"a: 1\nb:\n  c: x\n  d:\n    - 1\n    - 2\n", "f.yaml")

    assert {path: document.lines[path] for path in [("a",), ("b",), ("b", "c"), ("b", "d", 1)]} == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "d", 1): 6,
    }


def test_a_place_below_the_last_known_key_is_on_that_keys_line():
    document = read_yaml(b"a: 1\nb:\n  c: x\n", "f.yaml")

    assert str(document.place(("b", "c", "missing"))) == "f.yaml:3: b.c.missing"


def test_an_entry_that_did_not_come_from_a_file_has_no_line():
    assert str(Document(source="space entry 2", data={"a": 1}, lines={}).place(("a",))) == "space entry 2: a"


def test_a_document_below_a_path_keeps_its_lines():
    document = read_yaml(b"study: s\nspace:\n  - nginx\n  - set:\n      log: off\n", "study.yaml")

    below = document.below(("space", 1))

    assert below.data == {"set": {"log": "off"}}
    assert str(below.place(("set", "log"))) == "study.yaml:5: set.log"


@pytest.mark.parametrize("path", [("space", 0), ("space", 9), ("none",), ("study", "x")])
def test_there_is_no_document_below_what_is_not_a_mapping(path):
    document = read_yaml(b"study: s\nspace:\n  - nginx\n", "study.yaml")

    with pytest.raises(UsageError, match="does not hold `key: value`"):
        document.below(path)


@pytest.mark.parametrize(
    "word", ["on", "off", "yes", "no", "true", "null", "~", "1.20", "0x10", "2024-01-01", "1e3", ".inf"]
)
def test_an_unquoted_scalar_stays_the_text_that_was_written(word):
    value = read_yaml(f"a: {word}".encode(), "f.yaml").data["a"]

    assert value == word
    assert isinstance(value, Plain)


@pytest.mark.parametrize("text", ["a: 'on'", 'a: "on"', "a: |-\n  on", "a: >-\n  on"])
def test_a_quoted_scalar_is_a_text(text):
    value = read_yaml(text.encode(), "f.yaml").data["a"]

    assert value == "on"
    assert not isinstance(value, Plain)


@pytest.mark.parametrize(
    ("content", "line", "wrong"),
    [
        (b"- a\n- b\n", 1, "does not hold `key: value` lines"),
        (b"just words", 1, "does not hold `key: value` lines"),
        (b"a: 1\nb: 2\na: 3\n", 3, r"'a' is given a second time \(first at line 1\)"),
        (b"p:\n  x: 1\n  x: 2\n", 3, r"'x' is given a second time \(first at line 2\)"),
        (b"a: 1\nb: &anchor 2\n", 2, "anchors and aliases"),
        (b"a: 1\nb: *anchor\n", 2, "anchors and aliases"),
        (b"a: 1\n<<: *anchor\n", 2, "anchors and aliases"),
        (
            b"a: !!python/object/apply:os.system [ls]\n",
            1,
            "the tag tag:yaml.org,2002:python/object/apply:os.system",
        ),
        (b"a: !own 1\n", 1, "the tag !own"),
        (b"? [a, b]\n: 1\n", 1, "a key is not a plain word"),
        (b"a: 1\n---\nb: 2\n", 2, "a second document begins"),
        (b"a: [1, 2\nb: 3\n", 2, "the file is not valid YAML"),
        (b"a: 1\n\tb: 2\n", 2, "the file is not valid YAML: a line begins with a tab. Indent with spaces"),
        (b"a: 1\r\tb: 2\r", 2, "the file is not valid YAML: a line begins with a tab. Indent with spaces"),
        (
            b"a:\n  b: 1\n  \tc: 2\n",
            3,
            "the file is not valid YAML: a line begins with a tab. Indent with spaces",
        ),
        (b"a: 1\nb: caf\xe9\n", 2, "byte 0xe9 is not UTF-8"),
        (b"a: " + b"[" * 10000, 1, "nested too deeply"),
        (b"a: " + b"{a: " * 10000, 1, "nested too deeply"),
    ],
)
def test_what_is_not_a_plain_yaml_mapping_is_refused_with_its_line(content, line, wrong):
    with pytest.raises(UsageError, match=rf"^f\.yaml:{line}: .*{wrong}"):
        read_yaml(content, "f.yaml")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing but a remark\n"])
def test_an_empty_file_is_called_empty_with_what_such_a_file_begins_with(content):
    with pytest.raises(UsageError, match=r"^f\.yaml: the file is empty\. Begin with `study:`$"):
        read_yaml(content, "f.yaml", begin="Begin with `study:`")
    with pytest.raises(UsageError, match=r"does not hold .* Begin with `study:`$"):
        read_yaml(b"- a\n", "f.yaml", begin="Begin with `study:`")


def test_a_control_character_is_refused():
    with pytest.raises(UsageError, match=r"^f\.yaml: the file is not valid YAML: unacceptable character"):
        read_yaml(b"a: \x01", "f.yaml")


def test_an_alias_bomb_is_refused_before_it_grows():
    bomb = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (key, key, b", ".join([b"*%c" % (key - 1)] * 9)) for key in b"bcdefghij"
    )

    with pytest.raises(UsageError, match=r"^f\.yaml:1: a: anchors and aliases"):
        read_yaml(bomb, "f.yaml")


def test_a_huge_file_is_refused_unread():
    with pytest.raises(UsageError, match="larger than 256 KiB"):
        read_yaml(b"#" * (LARGEST_FILE_BYTES + 1), "f.yaml")
