import pytest

from tests.unit.simulation import space_of
from tuner.deploy.builtin_pages import BUILTIN_PAGES
from tuner.errors import UsageError
from tuner.study import load_study
from tuner.study.loads.builtin_loads import BUILTIN_LOADS, IMAGE_BYTES

HEAD = "study: test\nservers: [nginx]\nspace: [nginx]\n"


@pytest.fixture
def study(tmp_path):
    def read(text: str):
        path = tmp_path / "study.yaml"
        path.write_text(HEAD + text)
        return load_study(path)

    return read


@pytest.mark.parametrize("name", BUILTIN_LOADS)
def test_what_a_content_asks_for_is_a_page_that_can_be_made(study, name):
    load = study(f"load: {{content: {name}}}\n").load

    asked = [load.path, *(each.path for each in load.requests)]
    assert set(asked) <= BUILTIN_PAGES.keys()
    assert BUILTIN_LOADS[name].title in load.describe()


def test_the_images_of_a_page_are_many_small_ones_and_few_large_ones(study):
    load = study("load: {content: images}\n").load
    sizes = sorted(IMAGE_BYTES.values())

    assert [each.path for each in load.requests] == ["/images.html", *IMAGE_BYTES]
    assert (sizes[0], sizes[-1]) == (10_000, 1_000_000)
    assert len(set(sizes)) == len(sizes) >= 20
    assert sizes[len(sizes) // 2] < 100_000
    assert f"{sum(sizes) / 1e6:.1f} MB" in load.describe()


def test_another_content_is_another_study(study):
    space = space_of("sendfile")

    found = [study(f"load: {{content: {name}}}\n").definition(space)["load"] for name in ("tiny", "html")]

    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load: {content: image}\n", r"yaml:4: load\.content: there is no .* 'image'. Did you mean images"),
        ("load: {content: tiny, path: /a}\n", r"`load\.path:` and `load\.content: tiny` cannot be combined"),
        ("load: {content: tiny, requests: [{path: /a}]}\n", r"`load\.requests:` and `load\.content: tiny`"),
        ("load: {content: tiny, script: a.js}\n", r"`load\.script:` and `load\.content: tiny`"),
        ('load: {content: tiny}\nbackend: {command: [a, "{port}"]}\n', "`backend:` and `load.content: tiny`"),
        ("load: {content: tiny}\ncontent: /srv\n", "yaml:5: content: `content:` and `load.content: tiny`"),
        ("load: {content: tiny}\ntarget: {mode: managed}\n", "built-in content is for private instances"),
    ],
)  # fmt: skip
def test_a_content_beside_something_else_is_refused_with_its_place(study, text, message):
    with pytest.raises(UsageError, match=message):
        study(text)
