"""Creates, attaches, reads, patches, detaches and deletes objects of every kind with the generated client."""

import importlib
import json
import pathlib
import sys

import gatehouse_attrs.models as m
from gatehouse_attrs import AuthenticatedClient

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
# The modules whose names are not those of the kinds.
MODULES = {"filter": "filter_", "key": "keyset"}
here = pathlib.Path(__file__).parent


def call(tag, operation, *path, status, body=None, **query):
    """Makes a call, whose answer must have the status."""
    module = importlib.import_module(f"gatehouse_attrs.api.{MODULES.get(tag, tag)}.{operation}")
    kwargs = {} if body is None else {"body": body}
    answer = module.sync_detailed(*path, client=client, **kwargs, **query)
    assert answer.status_code == status, f"{operation} {path}: {answer.status_code}: {answer.content.decode()}"
    return answer.parsed


def create(kind, body, *path):
    return call(kind, f"create_{kind}", *path, status=201, body=body)


def read(kind, *path):
    """Returns the object."""
    return getattr(call(kind, f"read_{kind}", *path, status=200).data, f"core_db_{kind}")[0]


def patch(kind, *path, body):
    rows = call(kind, f"patch_{kind}", *path, status=200, body=body)
    assert getattr(rows.data, f"update_core_db_{kind}").affected_rows == 1, rows


# Types of writes want what the server wants, and nothing else.
for wrong in (lambda: m.ServiceCreate(service_name="shop"), lambda: m.UpstreamCreate(), lambda: m.ProxyCreate(), lambda: m.ServicePut()):
    try:
        wrong()
    except TypeError:
        continue
    raise AssertionError("a required field may be left out")

tags = ["clients"]
for name, protocol in (("blue", "http"), ("green", "http"), ("grpc", "h2c")):
    create("upstream", m.UpstreamCreate(
        upstream_name=name, upstream_ip="192.0.2.1", upstream_port=8081, upstream_protocol=m.UpstreamPatchUpstreamProtocol(protocol), tags=tags))
patch("upstream", "blue", body=m.UpstreamPatch(upstream_weight=20))
blue = read("upstream", "blue")
assert (blue.upstream_port, blue.upstream_weight, blue.tags) == (8081, 20, tags), blue

# The other two media types: a form, and the form of files.
call("upstream", "create_upstream", status=201, body=m.CreateUpstreamDataBody(upstream_name="form", upstream_ip="192.0.2.2", upstream_port=8082))
call("upstream", "create_upstream", status=201, body=m.CreateUpstreamFilesBody(upstream_name="files", upstream_ip="192.0.2.3", upstream_port=8083))
assert [read("upstream", name).upstream_port for name in ("form", "files")] == [8082, 8083]

create("secret", m.SecretCreate(secret_name="value", secret_value="0123456789abcdef0123456789abcdef"))
pair = {"secret_cert": (here / "cert.pem").read_text(), "secret_key": (here / "key.pem").read_text()}
create("secret", m.SecretCreate(secret_name="shop-tls", **pair))
patch("secret", "shop-tls", body=m.SecretPatch(tags=tags))
secret = read("secret", "shop-tls")
assert (secret.host_names, secret.tags) == (["shop.example.com"], tags), secret
create("keyset", m.KeysetCreate(keyset_name="partners"))
patch("keyset", "partners", body=m.KeysetPatch(tags=tags))
assert read("keyset", "partners").tags == tags
assert len(create("key", m.KeyCreate(key_name="mobile"), "partners").data.key) > 20
patch("key", "partners", "mobile", body=m.KeyPatch(key_description="the app"))
assert read("key", "partners", "mobile").key_description == "the app"

create("proxy", m.ProxyCreate(name="gw", https_port=8444, trusted_hops=1, tls_min_version=m.TLSMinVersion("1.3")))
assert read("proxy", "gw").tls_min_version == "1.3"
patch("proxy", "gw", body=m.ProxyPatch(tls_min_version=m.TLSMinVersion("1.2"), escaped_slashes=m.EscapedSlashes.KEEP))
gw = read("proxy", "gw")
assert (gw.https_port, gw.trusted_hops, gw.tls_min_version, gw.escaped_slashes) == (8444, 1, "1.2", "keep"), gw
call("proxy", "put_proxy", "gw", status=200, body=m.ProxyPatch(https_port=8445))

rates = m.RateLimitConfig(domain="shop", descriptors=[m.RateLimitRule.from_dict(
    {"key": "remote_address", "rate_limit": {"unit": "second", "requests_per_unit": 10}})])
create("globalconfig", m.GlobalconfigCreate(globalconfig_name="rates", globalconfig_type=m.GlobalconfigType.GLOBALCONFIG_RATELIMIT, config=rates))
patch("globalconfig", "rates", body=m.GlobalconfigPatch(tags=tags))
got = read("globalconfig", "rates")
assert (got.config["domain"], got.tags) == ("shop", tags), got
call("proxy", "attach_proxy_globalconfig", "gw", "rates", status=201)

create("service", m.ServiceCreate(service_name="shop", fqdn="shop.example.com", https=m.HTTPS.REDIRECT))
patch("service", "shop", body=m.ServicePatch(hsts_seconds=3600))
shop = read("service", "shop")
assert (shop.fqdn, shop.https, shop.hsts_seconds) == ("shop.example.com", "redirect", 3600), shop
call("service", "attach_service_secret", "shop", "shop-tls", status=201)
call("proxy", "attach_proxy_service", "gw", "shop", status=201)
create("route", m.RouteCreate(route_name="root", route_prefix="/", route_config=m.RouteConfig(timeouts=m.RouteConfigTimeouts(request="2s"))), "shop")
patch("route", "shop", "root", body=m.RoutePatch(route_config='{"match":"segment"}'))
assert read("route", "shop", "root").route_config.match == "segment"
call("route", "attach_route_upstream", "shop", "root", "blue", status=201)

filters = json.loads((here / "filters.json").read_text())
for f in filters:
    schema, name = getattr(m, f["schema"]), f["schema"].lower()
    config = schema.from_dict(f["config"])
    assert config.to_dict() == f["config"], f"{f['schema']} loses something: {config.to_dict()}"
    create("filter", m.FilterCreate(filter_name=name, filter_type=m.FilterType(f["type"]), filter_config=config))
    patch("filter", name, body=m.FilterPatch(tags=tags))
    got = read("filter", name)
    assert (got.filter_config.to_dict(), got.tags) == (f["config"], tags), got
    create("service", m.ServiceCreate(service_name=name, fqdn=name + ".example.com"))
    create("route", m.RouteCreate(route_name="root", route_prefix="/"), name)
    call("route", "attach_route_upstream", name, "root", "grpc", status=201)
    if f["on"] == "service":
        call("service", "attach_service_filter", name, name, status=201)
    else:
        call("route", "attach_route_filter", name, "root", name, status=201)
    call("proxy", "attach_proxy_service", "gw", name, status=201)

for f in filters:
    name = f["schema"].lower()
    call("proxy", "detach_proxy_service", "gw", name, status=200)
    if f["on"] == "service":
        call("service", "detach_service_filter", name, name, status=200)
    else:
        call("route", "detach_route_filter", name, "root", name, status=200)
    call("service", "delete_service", name, status=200)
    call("filter", "delete_filter", name, status=200)
for kind, path in (
    ("proxy_service", ("gw", "shop")), ("proxy_globalconfig", ("gw", "rates")), ("service_secret", ("shop", "shop-tls")), ("route_upstream", ("shop", "root", "blue")),
):
    call(kind.split("_")[0], f"detach_{kind}", *path, status=200)
for kind, path in (
    ("proxy", ["gw"]), ("globalconfig", ["rates"]), ("route", ["shop", "root"]), ("service", ["shop"]), ("key", ["partners", "mobile"]),
    ("keyset", ["partners"]), ("secret", ["shop-tls"]), ("secret", ["value"]),
    *(("upstream", [name]) for name in ("blue", "green", "grpc", "form", "files")),
):
    call(kind, f"delete_{kind}", *path, status=200)
for kind in ("upstream", "service", "proxy", "filter", "globalconfig", "secret", "keyset"):
    listed = call(kind, "list_proxies" if kind == "proxy" else f"list_{kind}s", status=200)
    assert getattr(listed.data, f"core_db_{kind}") == [], listed
print("done")
