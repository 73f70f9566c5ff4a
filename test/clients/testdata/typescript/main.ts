// Creates, patches, lists and deletes with the generated client, whose types
// tsc has checked: a field that is wanted or refused too much is an error there.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.d.ts";
import { kinds } from "./kinds.ts";

const [, , baseUrl, token] = process.argv;
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

const blue: components["schemas"]["UpstreamCreate"] = { Upstream_name: "blue", Upstream_ip: "192.0.2.1", Upstream_port: 8081 };
const created = await api.POST("/upstream", { body: { ...blue, Upstream_hc_path: "/healthz", tags: ["shop"] } });
assert.equal(created.response.status, 201);
assert.equal(created.response.headers.get("Location"), "/upstream/blue");
assert.deepEqual(created.data, { data: { insert_core_db_upstream: { affected_rows: 1 } } });

const taken = await api.POST("/upstream", { body: blue });
assert.equal(taken.error?.code, "already_exists");

const at = { params: { path: { upstream: "blue" } } };
const patched = await api.PATCH("/upstream/{upstream}", { ...at, body: { Upstream_weight: 20 } });
assert.equal(patched.response.status, 200);

const dry = await api.PATCH("/upstream/{upstream}", { params: { ...at.params, query: { dry_run: true } }, body: { Upstream_weight: 1 } });
assert.match(JSON.stringify(dry.data), /"path":"\/upstream\/blue"/);

const list = await api.GET("/upstream", { params: { query: { limit: 10, tag: "shop" } } });
const [read] = list.data?.data.core_db_upstream ?? [];
assert.equal(list.data?.data.core_db_upstream.length, 1);
assert.deepEqual([read?.upstream_port, read?.upstream_weight, read?.upstream_hc_path, read?.tags], [8081, 20, "/healthz", ["shop"]]);

for (const made of [
  await api.POST("/service", { body: { Service_Name: "shop", fqdn: "shop.example.com" } }),
  await api.POST("/service/{service}/route", {
    params: { path: { service: "shop" } },
    body: { Route_Name: "root", Route_prefix: "/", Route_config: { match: "segment", timeouts: { request: "2s" } } },
  }),
  await api.POST("/service/{service}/route/{route}/upstream/{upstream}", { params: { path: { service: "shop", route: "root", upstream: "blue" } } }),
  await api.POST("/proxy", { body: { Name: "gw" } }),
  await api.POST("/filter", {
    body: { Filter_name: "limit", Filter_type: "route_filter_ratelimit", Filter_config: { descriptors: [{ remote_address: "client" }] } },
  }),
]) {
  assert.equal(made.response.status, 201);
}
const route = await api.GET("/service/{service}/route/{route}", { params: { path: { service: "shop", route: "root" } } });
assert.equal(route.data?.data.core_db_route[0]?.route_config.timeouts?.request, "2s");
const limit = await api.GET("/filter/{filter}", { params: { path: { filter: "limit" } } });
assert.deepEqual(limit.data?.data.core_db_filter[0]?.filter_config["descriptors"], [{ remote_address: "client" }]);

const used = await api.DELETE("/upstream/{upstream}", at);
assert.deepEqual(used.error?.referenced_by, ["/service/shop/route/root"]);
assert.equal((await api.DELETE("/service/{service}", { params: { path: { service: "shop" } } })).response.status, 200);
assert.equal((await api.DELETE("/proxy/{proxy}", { params: { path: { proxy: "gw" } } })).response.status, 200);
assert.equal((await api.DELETE("/filter/{filter}", { params: { path: { filter: "limit" } } })).response.status, 200);
assert.equal((await api.DELETE("/upstream/{upstream}", at)).response.status, 200);
assert.equal((await api.GET("/upstream")).data?.data.core_db_upstream.length, 0);
await kinds(api);
console.log("done");
