"""An installed nginx with virtual hosts: what is proposed as its load, and what several loads learn of it."""

from pathlib import Path

from tests.testbed.bed import Testbed
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.commands.virtual_hosts import propose_load
from tuner.study import load_study

SITES = """\
server { listen 80; server_name shop.test www.shop.test; root /srv/shop; }
server { listen 80; server_name img.test; root /srv/img; }
server { listen 80; server_name old.test; return 301 http://shop.test/; }
"""
STUDY = """\
study: sites
servers: [nginx]
space: [nginx]
target: {{host: "{url}", mode: managed}}
loads:
  - {{name: shop, path: "{site}", headers: {{Host: shop.test}}}}
  - name: both
    requests: [{{url: "{site}"}}, {{url: "http://img.test/", weight: 2}}]
"""


def test_each_virtual_host_is_proposed_and_asked_by_its_name(bed: Testbed, tmp_path: Path):
    web = bed.add_host("sites")
    web.install_nginx()
    (web.root / "etc/nginx/conf.d/sites.conf").write_text(SITES)
    for name, length in (("shop", 3000), ("img", 9000)):
        page = web.root / f"srv/{name}/index.html"
        page.parent.mkdir()
        page.write_text(length * "x")
    web.run(["nginx", "-s", "reload"])
    site = f"http://{web.address}/"
    (tmp_path / "study.yaml").write_text(STUDY.format(url=web.ssh_url, site=site))
    host = plugins.make_host(web.ssh_url)

    proposed = propose_load(host, plugins.make_installed_server("nginx").find(host))
    found = find_target(load_study(tmp_path / "study.yaml"), host)
    target = found.target

    assert proposed is not None
    assert (proposed.url, [dict(each.headers) for each in proposed.requests]) == (
        "http://127.0.0.1/",
        [{"Host": "shop.test"}, {"Host": "img.test"}],
    )
    assert target.load.pages[0].kind.body_bytes == 3000
    both = target.other_loads["both"]
    assert both.url == site
    assert [each.kind.body_bytes for each in both.pages][1:] == [9000]

    # A page of a load that is not the first was replaced: each trial learns it again.
    (web.root / "srv/img/index.html").write_text(5000 * "y")
    notes: list[str] = []
    with (
        target.hold(notes.append),
        target.deploy(found.space.complete({"worker_processes": 3})) as deployment,
    ):
        lengths = [each.body_bytes for each in deployment.under("both").load.requests]
    assert lengths[1:] == [5000]
    assert any("a page changed during the run" in note for note in notes)
