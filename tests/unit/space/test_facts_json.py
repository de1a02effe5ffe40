import json

from tuner.space import SpaceFacts, facts_from_json, facts_to_json, load_space

FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 2048, "connections": 50, "open_files_max": 1048576, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1), "sysctl": (6, 1)},
    current={"worker_processes": 2, "net.core.somaxconn": 4096},
    sandbox=False,
    loopback=False,
)


def test_a_space_is_the_same_when_its_facts_were_kept_as_json(tmp_path):
    told: dict[str, bool] = {}

    def exists(path: str) -> bool:
        return told.setdefault(path, not path.endswith("somaxconn"))

    facts = SpaceFacts(**{**{name: getattr(FACTS, name) for name in FACTS.__slots__}, "exists": exists})
    sources = ["nginx", "sysctl-net"]
    first = load_space(sources, facts=facts, base=tmp_path)
    kept = json.loads(json.dumps(facts_to_json(facts, told)))

    again = load_space(sources, facts=facts_from_json(kept), base=tmp_path)

    assert "net.core.somaxconn" in first.left_out
    assert again.left_out == first.left_out
    assert again.dimensions == first.dimensions
    assert again.default() == first.default()
