"""Creates, attaches, reads, patches, detaches and deletes objects of every kind."""

import json
import pathlib

import gatehouse_client as g
from pydantic import ValidationError

here = pathlib.Path(__file__).parent
TAGS = ["clients"]
# The kinds whose calls are not in an API of their own.
APIS = {"Key": g.KeysetApi}
# The generator makes no class of a type without fields, and reads no list whose elements have fields of several types.
AS_TEXT = ["GRPCWebFilter", "RateLimitFilter"]


class Kinds:
    """Makes calls of objects by their kind, as in "Service"."""

    def __init__(self, client):
        self.client = client

    def call(self, kind, operation, *args):
        api = APIS.get(kind) or getattr(g, f"{kind}Api")
        return getattr(api(self.client), operation)(*args)

    def create(self, kind, *args):
        return self.call(kind, f"create_{kind.lower()}", *args)

    def read(self, kind, *names):
        return getattr(self.call(kind, f"read_{kind.lower()}", *names).data, f"core_db_{kind.lower()}")[0]

    def patch(self, kind, *args):
        answer = self.call(kind, f"patch_{kind.lower()}", *args).actual_instance
        assert getattr(answer.data, f"update_core_db_{kind.lower()}").affected_rows == 1, answer

    def delete(self, kind, *names):
        self.call(kind, f"delete_{kind.lower()}", *names)

    def link(self, on, what, *names):
        self.call(on, f"attach_{on.lower()}_{what.lower()}", *names)

    def unlink(self, on, what, *names):
        self.call(on, f"detach_{on.lower()}_{what.lower()}", *names)


def run(client):
    k = Kinds(client)
    for wrong in (lambda: g.ServiceCreate(Service_Name="shop"), g.UpstreamCreate, g.ProxyCreate, g.ServicePut):
        try:
            wrong()
        except ValidationError:
            continue
        raise AssertionError("a required field may be left out")
    for name, protocol in (("blue", "http"), ("green", "http"), ("grpc", "h2c")):
        k.create("Upstream", g.UpstreamCreate(Upstream_name=name, Upstream_ip="192.0.2.1", Upstream_port=8081, Upstream_protocol=protocol))
    secrets(k)
    proxy(k)
    service(k)
    filters = json.loads((here / "filters.json").read_text())
    for f in filters:
        attach(k, f)
    for f in filters:
        detach(k, f)
    k.unlink("Proxy", "Service", "gw", "shop")
    k.unlink("Proxy", "Globalconfig", "gw", "rates")
    k.unlink("Service", "Secret", "shop", "shop-tls")
    k.unlink("Route", "Upstream", "shop", "root", "blue")
    for kind, names in (
        ("Proxy", ["gw"]), ("Globalconfig", ["rates"]), ("Route", ["shop", "root"]), ("Service", ["shop"]), ("Key", ["partners", "mobile"]),
        ("Keyset", ["partners"]), ("Secret", ["shop-tls"]), ("Secret", ["value"]), *(("Upstream", [name]) for name in ("blue", "green", "grpc")),
    ):
        k.delete(kind, *names)


def secrets(k):
    k.create("Secret", g.SecretCreate(Secret_name="value", Secret_value="0123456789abcdef0123456789abcdef"))
    cert, key = ((here / name).read_text() for name in ("cert.pem", "key.pem"))
    k.create("Secret", g.SecretCreate(Secret_name="shop-tls", Secret_cert=cert, Secret_key=key))
    k.patch("Secret", "shop-tls", g.SecretPatch(tags=g.TagsField(TAGS)))
    secret = k.read("Secret", "shop-tls")
    assert (secret.host_names, secret.tags) == (["shop.example.com"], TAGS), secret
    k.create("Keyset", g.KeysetCreate(Keyset_name="partners"))
    k.patch("Keyset", "partners", g.KeysetPatch(tags=g.TagsField(TAGS)))
    assert k.read("Keyset", "partners").tags == TAGS
    k.create("Key", "partners", g.KeyCreate(Key_name="mobile"))
    k.patch("Key", "partners", "mobile", g.KeyPatch(Key_description="the app"))
    assert k.read("Key", "partners", "mobile").key_description == "the app"


def proxy(k):
    k.create("Proxy", g.ProxyCreate(Name="gw", Https_port=8444, Trusted_hops=1, Tls_min_version=g.TLSMinVersion("1.3")))
    assert k.read("Proxy", "gw").tls_min_version == "1.3"
    k.patch("Proxy", "gw", g.ProxyPatch(Tls_min_version=g.TLSMinVersion("1.2"), Escaped_slashes=g.EscapedSlashes("keep")))
    gw = k.read("Proxy", "gw")
    assert (gw.https_port, gw.trusted_hops, gw.tls_min_version, gw.escaped_slashes) == (8444, 1, "1.2", "keep"), gw
    k.call("Proxy", "put_proxy", "gw", g.ProxyPut(Https_port=8445))
    rules = [g.RateLimitRule(key="remote_address", rate_limit=g.RateLimit(unit="second", requests_per_unit=10))]
    config = g.GlobalconfigPatchConfig(g.RateLimitConfig(domain="shop", descriptors=rules))
    k.create("Globalconfig", g.GlobalconfigCreate(globalconfig_name="rates", globalconfig_type="globalconfig_ratelimit", config=config))
    k.patch("Globalconfig", "rates", g.GlobalconfigPatch(tags=g.TagsField(TAGS)))
    rates = k.read("Globalconfig", "rates")
    assert (rates.config["domain"], rates.tags) == ("shop", TAGS), rates
    k.link("Proxy", "Globalconfig", "gw", "rates")


def service(k):
    k.create("Service", g.ServiceCreate(Service_Name="shop", fqdn="shop.example.com", Https=g.HTTPS("redirect")))
    k.patch("Service", "shop", g.ServicePatch(Hsts_seconds=3600))
    shop = k.read("Service", "shop")
    assert (shop.fqdn, shop.https, shop.hsts_seconds) == ("shop.example.com", "redirect", 3600), shop
    k.link("Service", "Secret", "shop", "shop-tls")
    k.link("Proxy", "Service", "gw", "shop")
    k.create("Route", "shop", g.RouteCreate(Route_Name="root", Route_prefix="/"))
    k.patch("Route", "shop", "root", g.RoutePatch(Route_config=g.RoutePatchRouteConfig(g.RouteConfig(match="segment"))))
    assert k.read("Route", "shop", "root").route_config.match == "segment"
    k.link("Route", "Upstream", "shop", "root", "blue")


def attach(k, f):
    """Creates a filter and a service for it, and attaches both."""
    name = f["schema"].lower()
    if f["schema"] in AS_TEXT:
        config = json.dumps(f["config"])
    else:
        config = getattr(g, f["schema"]).from_dict(f["config"])
    k.create("Filter", g.FilterCreate(Filter_name=name, Filter_type=f["type"], Filter_config=g.FilterPatchFilterConfig(config)))
    k.patch("Filter", name, g.FilterPatch(tags=g.TagsField(TAGS)))
    read = k.read("Filter", name)
    assert (read.filter_config, read.tags) == (f["config"], TAGS), read
    k.create("Service", g.ServiceCreate(Service_Name=name, fqdn=name + ".example.com"))
    k.create("Route", name, g.RouteCreate(Route_Name="root", Route_prefix="/"))
    k.link("Route", "Upstream", name, "root", "grpc")
    if f["on"] == "service":
        k.link("Service", "Filter", name, name)
    else:
        k.link("Route", "Filter", name, "root", name)
    k.link("Proxy", "Service", "gw", name)


def detach(k, f):
    """Deletes what attach made."""
    name = f["schema"].lower()
    k.unlink("Proxy", "Service", "gw", name)
    if f["on"] == "service":
        k.unlink("Service", "Filter", name, name)
    else:
        k.unlink("Route", "Filter", name, "root", name)
    k.delete("Service", name)
    k.delete("Filter", name)
