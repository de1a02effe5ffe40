"""The studies that come with tuner, on this machine: what was tried then really runs."""

import pytest

from tuner.campaign.prepare import prepare
from tuner.commands.contests.compare import list_presets
from tuner.space.yaml_text import Document
from tuner.study import load_study
from tuner.study.named_studies import named_studies

pytestmark = pytest.mark.more


@pytest.mark.parametrize("name", named_studies())
def test_what_was_tried_then_is_put_in_force_as_far_as_it_acts_here(name, tmp_path):
    path = tmp_path / f"{name}.yaml"
    path.write_bytes(named_studies()[name].read_bytes())
    settings = load_study(path)
    setup = prepare(settings)
    known = list_presets(setup.space)
    documents = [entry for entry in settings.space if isinstance(entry, Document)]
    own = [preset for entry in documents for preset in entry.data.get("presets", {})]

    assert set(own) <= known.keys()
    for space, preset in (known[each] for each in own):
        assert preset.values or preset.adjusted
        config = space.complete(preset.values)
        with setup.target.deploy(config) as deployment:
            assert deployment.effective.items() <= config.items()
