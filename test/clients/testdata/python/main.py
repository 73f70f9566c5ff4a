"""Creates, patches, lists and deletes with the generated client."""

import sys

import gatehouse_client as g
import kinds
from gatehouse_client.exceptions import ConflictException

config = g.Configuration(host=sys.argv[1], access_token=sys.argv[2])
with g.ApiClient(config) as client:
    upstreams, services, routes = g.UpstreamApi(client), g.ServiceApi(client), g.RouteApi(client)
    proxies, filters = g.ProxyApi(client), g.FilterApi(client)

    blue = g.UpstreamCreate(Upstream_name="blue", Upstream_ip="192.0.2.1", Upstream_port=8081)
    full = blue.model_copy(update={"upstream_hc_path": "/healthz", "tags": g.TagsField(["shop"])})
    created = upstreams.create_upstream_with_http_info(full)
    assert created.status_code == 201, created.status_code
    assert created.headers["Location"] == "/upstream/blue", created.headers
    assert created.data.data.insert_core_db_upstream.affected_rows == 1

    try:
        upstreams.create_upstream(blue)
        raise AssertionError("the name was taken")
    except ConflictException as e:
        assert '"code":"already_exists"' in e.body, e.body

    patched = upstreams.patch_upstream("blue", g.UpstreamPatch(Upstream_weight=20))
    assert patched.actual_instance.data.update_core_db_upstream.affected_rows == 1, patched
    dry = upstreams.patch_upstream("blue", g.UpstreamPatch(Upstream_weight=1), dry_run=True)
    assert dry.actual_instance.data.changes[0].path == "/upstream/blue", dry

    listed = upstreams.list_upstreams(limit=10, tag="shop").data.core_db_upstream
    assert len(listed) == 1, listed
    read = listed[0]
    assert (read.upstream_port, read.upstream_weight, read.upstream_hc_path, read.tags) == (8081, 20, "/healthz", ["shop"]), read

    services.create_service(g.ServiceCreate(Service_Name="shop", fqdn="shop.example.com"))
    timeouts = g.RouteConfigTimeouts(request="2s")
    routes.create_route("shop", g.RouteCreate(
        Route_Name="root", Route_prefix="/", Route_config=g.RoutePatchRouteConfig(g.RouteConfig(match="segment", timeouts=timeouts))))
    routes.attach_route_upstream("shop", "root", "blue")
    assert proxies.create_proxy(g.ProxyCreate(Name="gw")).name == "gw"
    filters.create_filter(g.FilterCreate(
        Filter_name="limit", Filter_type="route_filter_ratelimit",
        Filter_config=g.FilterPatchFilterConfig('{"descriptors":[{"remote_address":"client"}]}')))

    assert routes.read_route("shop", "root").data.core_db_route[0].route_config.timeouts.request == "2s"
    assert filters.read_filter("limit").data.core_db_filter[0].filter_config == {"descriptors": [{"remote_address": "client"}]}

    try:
        upstreams.delete_upstream("blue")
        raise AssertionError("the upstream was in use")
    except ConflictException as e:
        assert "/service/shop/route/root" in e.body, e.body
    services.delete_service("shop")
    proxies.delete_proxy("gw")
    filters.delete_filter("limit")
    upstreams.delete_upstream("blue")
    assert upstreams.list_upstreams().data.core_db_upstream == []
    kinds.run(client)
print("done")
