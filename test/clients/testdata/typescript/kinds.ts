// Creates, attaches, reads, patches, detaches and deletes objects of every kind.
// tsc compares each body with the types, among them the configurations in filters.ts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Client } from "openapi-fetch";
import type { components, paths } from "./api.d.ts";
import { filters } from "./filters.ts";

/** A call whose answer must have this status; returns its data. */
async function want<T>(status: number, call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  assert.equal(response.status, status, `${response.url}: ${JSON.stringify(error)}`);
  assert.ok(data !== undefined);
  return data;
}

const tags = ["clients"];

/** The types of writes want what the server wants, and nothing else: tsc reports an expected error that is none. */
export function refused(): components["schemas"]["ServiceCreate" | "UpstreamCreate" | "ProxyCreate"][] {
  return [
    // @ts-expect-error fqdn is required
    { Service_Name: "shop" },
    // @ts-expect-error Upstream_port is required
    { Upstream_name: "blue", Upstream_ip: "192.0.2.1" },
    // @ts-expect-error Name is required
    { Http_port: 8080 },
  ];
}

export async function kinds(api: Client<paths>): Promise<void> {
  for (const [name, protocol] of [["blue", "http"], ["green", "http"], ["grpc", "h2c"]] as const) {
    await want(201, api.POST("/upstream", {
      body: { Upstream_name: name, Upstream_ip: "192.0.2.1", Upstream_port: 8081, Upstream_protocol: protocol },
    }));
  }
  await secrets(api);
  await keys(api);
  await proxy(api);
  await service(api);
  for (const f of filters) {
    await attach(api, f);
  }
  for (const f of filters) {
    await detach(api, f);
  }
  await clean(api);
}

async function secrets(api: Client<paths>): Promise<void> {
  const read = (name: string) => readFileSync(name, "utf8");
  await want(201, api.POST("/secret", { body: { Secret_name: "value", Secret_value: "0123456789abcdef0123456789abcdef" } }));
  await want(201, api.POST("/secret", { body: { Secret_name: "shop-tls", Secret_cert: read("cert.pem"), Secret_key: read("key.pem") } }));
  const params = { path: { secret: "shop-tls" } };
  await want(200, api.PATCH("/secret/{secret}", { params, body: { tags } }));
  const [secret] = (await want(200, api.GET("/secret/{secret}", { params }))).data.core_db_secret;
  assert.deepEqual([secret?.host_names, secret?.tags], [["shop.example.com"], tags]);
}

async function keys(api: Client<paths>): Promise<void> {
  const set = { path: { keyset: "partners" } };
  await want(201, api.POST("/keyset", { body: { Keyset_name: "partners" } }));
  await want(200, api.PATCH("/keyset/{keyset}", { params: set, body: { tags } }));
  assert.deepEqual((await want(200, api.GET("/keyset/{keyset}", { params: set }))).data.core_db_keyset[0]?.tags, tags);
  await want(201, api.POST("/keyset/{keyset}/key", { params: set, body: { Key_name: "mobile" } }));
  const params = { path: { keyset: "partners", key: "mobile" } };
  await want(200, api.PATCH("/keyset/{keyset}/key/{key}", { params, body: { Key_description: "the app" } }));
  assert.equal((await want(200, api.GET("/keyset/{keyset}/key/{key}", { params }))).data.core_db_key[0]?.key_description, "the app");
}

async function proxy(api: Client<paths>): Promise<void> {
  const params = { path: { proxy: "gw" } };
  await want(201, api.POST("/proxy", { body: { Name: "gw", Https_port: 8444, Trusted_hops: 1, Tls_min_version: "1.3" } }));
  assert.equal((await want(200, api.GET("/proxy/{proxy}", { params }))).data.core_db_proxy[0]?.tls_min_version, "1.3");
  await want(200, api.PATCH("/proxy/{proxy}", { params, body: { Tls_min_version: "1.2", Escaped_slashes: "keep" } }));
  const [gw] = (await want(200, api.GET("/proxy/{proxy}", { params }))).data.core_db_proxy;
  assert.deepEqual([gw?.https_port, gw?.trusted_hops, gw?.tls_min_version, gw?.escaped_slashes], [8444, 1, "1.2", "keep"]);
  await want(200, api.PUT("/proxy/{proxy}", { params, body: { Https_port: 8445 } }));

  await want(201, api.POST("/globalconfig", {
    body: {
      globalconfig_name: "rates", globalconfig_type: "globalconfig_ratelimit",
      config: { domain: "shop", descriptors: [{ key: "remote_address", rate_limit: { unit: "second", requests_per_unit: 10 } }] },
    },
  }));
  const rates = { path: { globalconfig: "rates" } };
  await want(200, api.PATCH("/globalconfig/{globalconfig}", { params: rates, body: { tags } }));
  const [read] = (await want(200, api.GET("/globalconfig/{globalconfig}", { params: rates }))).data.core_db_globalconfig;
  assert.deepEqual([read?.config["domain"], read?.tags], ["shop", tags]);
  await want(201, api.POST("/proxy/{proxy}/globalconfig/{globalconfig}", { params: { path: { proxy: "gw", globalconfig: "rates" } } }));
}

async function service(api: Client<paths>): Promise<void> {
  const params = { path: { service: "shop" } };
  await want(201, api.POST("/service", { body: { Service_Name: "shop", fqdn: "shop.example.com", Https: "redirect" } }));
  await want(200, api.PATCH("/service/{service}", { params, body: { Hsts_seconds: 3600 } }));
  const [shop] = (await want(200, api.GET("/service/{service}", { params }))).data.core_db_service;
  assert.deepEqual([shop?.fqdn, shop?.https, shop?.hsts_seconds], ["shop.example.com", "redirect", 3600]);
  await want(201, api.POST("/service/{service}/secret/{secret}", { params: { path: { service: "shop", secret: "shop-tls" } } }));
  await want(201, api.POST("/proxy/{proxy}/service/{service}", { params: { path: { proxy: "gw", service: "shop" } } }));
  await want(201, api.POST("/service/{service}/route", { params, body: { Route_Name: "root", Route_prefix: "/" } }));
  const root = { path: { service: "shop", route: "root" } };
  await want(200, api.PATCH("/service/{service}/route/{route}", { params: root, body: { Route_config: { match: "segment" } } }));
  assert.equal((await want(200, api.GET("/service/{service}/route/{route}", { params: root }))).data.core_db_route[0]?.route_config.match, "segment");
  await want(201, api.POST("/service/{service}/route/{route}/upstream/{upstream}", { params: { path: { ...root.path, upstream: "blue" } } }));
}

/** Creates a filter and a service for it, and attaches both. */
async function attach(api: Client<paths>, f: (typeof filters)[number]): Promise<void> {
  const name = f.body.Filter_name;
  const params = { path: { filter: name } };
  await want(201, api.POST("/filter", { body: f.body }));
  await want(200, api.PATCH("/filter/{filter}", { params, body: { tags } }));
  const [read] = (await want(200, api.GET("/filter/{filter}", { params }))).data.core_db_filter;
  assert.deepEqual([read?.filter_config, read?.tags], [f.body.Filter_config, tags]);
  await want(201, api.POST("/service", { body: { Service_Name: name, fqdn: `${name}.example.com` } }));
  await want(201, api.POST("/service/{service}/route", { params: { path: { service: name } }, body: { Route_Name: "root", Route_prefix: "/" } }));
  const root = { service: name, route: "root" };
  await want(201, api.POST("/service/{service}/route/{route}/upstream/{upstream}", { params: { path: { ...root, upstream: "grpc" } } }));
  if (f.on === "service") {
    await want(201, api.POST("/service/{service}/filter/{filter}", { params: { path: { service: name, filter: name } } }));
  } else {
    await want(201, api.POST("/service/{service}/route/{route}/filter/{filter}", { params: { path: { ...root, filter: name } } }));
  }
  await want(201, api.POST("/proxy/{proxy}/service/{service}", { params: { path: { proxy: "gw", service: name } } }));
}

/** Deletes what attach made. */
async function detach(api: Client<paths>, f: (typeof filters)[number]): Promise<void> {
  const name = f.body.Filter_name;
  await want(200, api.DELETE("/proxy/{proxy}/service/{service}", { params: { path: { proxy: "gw", service: name } } }));
  if (f.on === "service") {
    await want(200, api.DELETE("/service/{service}/filter/{filter}", { params: { path: { service: name, filter: name } } }));
  } else {
    await want(200, api.DELETE("/service/{service}/route/{route}/filter/{filter}", { params: { path: { service: name, route: "root", filter: name } } }));
  }
  await want(200, api.DELETE("/service/{service}", { params: { path: { service: name } } }));
  await want(200, api.DELETE("/filter/{filter}", { params: { path: { filter: name } } }));
}

async function clean(api: Client<paths>): Promise<void> {
  const service = "shop", route = "root", proxy = "gw", keyset = "partners", globalconfig = "rates";
  await want(200, api.DELETE("/proxy/{proxy}/service/{service}", { params: { path: { proxy, service } } }));
  await want(200, api.DELETE("/proxy/{proxy}/globalconfig/{globalconfig}", { params: { path: { proxy, globalconfig } } }));
  await want(200, api.DELETE("/service/{service}/secret/{secret}", { params: { path: { service, secret: "shop-tls" } } }));
  await want(200, api.DELETE("/service/{service}/route/{route}/upstream/{upstream}", { params: { path: { service, route, upstream: "blue" } } }));
  await want(200, api.DELETE("/proxy/{proxy}", { params: { path: { proxy } } }));
  await want(200, api.DELETE("/globalconfig/{globalconfig}", { params: { path: { globalconfig } } }));
  await want(200, api.DELETE("/service/{service}/route/{route}", { params: { path: { service, route } } }));
  await want(200, api.DELETE("/service/{service}", { params: { path: { service } } }));
  await want(200, api.DELETE("/keyset/{keyset}/key/{key}", { params: { path: { keyset, key: "mobile" } } }));
  await want(200, api.DELETE("/keyset/{keyset}", { params: { path: { keyset } } }));
  for (const secret of ["value", "shop-tls"]) {
    await want(200, api.DELETE("/secret/{secret}", { params: { path: { secret } } }));
  }
  for (const upstream of ["blue", "green", "grpc"]) {
    await want(200, api.DELETE("/upstream/{upstream}", { params: { path: { upstream } } }));
  }
}
