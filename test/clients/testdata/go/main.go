// Creates, patches, lists and deletes with the generated client, api.go.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// must ends the program unless a call was made and answered with a status.
func must(what string, err error, got *http.Response, status int, body []byte) {
	if err != nil {
		fail("%s: %s", what, err)
	}
	if got.StatusCode != status {
		fail("%s: status %d: %s", what, got.StatusCode, body)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func main() {
	ctx := context.Background()
	api, err := NewClientWithResponses(os.Args[1], WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}))
	if err != nil {
		fail("%s", err)
	}
	upstream(ctx, api)
	others(ctx, api)

	gone, err := api.DeleteUpstreamWithResponse(ctx, "blue", nil)
	must("delete", err, gone.HTTPResponse, 200, gone.Body)
	list, err := api.ListUpstreamsWithResponse(ctx, nil)
	must("list", err, list.HTTPResponse, 200, list.Body)
	if n := len(list.JSON200.Data.CoreDbUpstream); n != 0 {
		fail("%d upstreams are left", n)
	}
	kinds(ctx, api)
	fmt.Println("done")
}

func upstream(ctx context.Context, api *ClientWithResponses) {
	path, tags := "/healthz", TagsField{}
	if err := tags.FromTags(Tags{"shop"}); err != nil {
		fail("%s", err)
	}
	blue := UpstreamCreate{UpstreamName: "blue", UpstreamIp: "192.0.2.1", UpstreamPort: 8081, UpstreamHcPath: &path, Tags: &tags}
	created, err := api.CreateUpstreamWithResponse(ctx, nil, blue)
	must("create", err, created.HTTPResponse, 201, created.Body)
	if at := created.HTTPResponse.Header.Get("Location"); at != "/upstream/blue" || created.JSON201.Data.InsertCoreDbUpstream.AffectedRows != 1 {
		fail("create: %s, %s", at, created.Body)
	}
	taken, err := api.CreateUpstreamWithResponse(ctx, nil, blue)
	must("create again", err, taken.HTTPResponse, 409, taken.Body)
	if taken.ApplicationproblemJSON409.Code != "already_exists" {
		fail("create again: %s", taken.Body)
	}
	weight := 20
	patched, err := api.PatchUpstreamWithResponse(ctx, "blue", nil, UpstreamPatch{UpstreamWeight: &weight})
	must("patch", err, patched.HTTPResponse, 200, patched.Body)
	limit, tag := 10, Tag("shop")
	list, err := api.ListUpstreamsWithResponse(ctx, &ListUpstreamsParams{Limit: &limit, Tag: &tag})
	must("list", err, list.HTTPResponse, 200, list.Body)
	if n := len(list.JSON200.Data.CoreDbUpstream); n != 1 {
		fail("list: %d upstreams", n)
	}
	read := list.JSON200.Data.CoreDbUpstream[0]
	if read.UpstreamPort != 8081 || read.UpstreamWeight != 20 || read.UpstreamHcPath != "/healthz" || len(read.Tags) != 1 {
		fail("list: the patch has changed more than the weight: %s", list.Body)
	}
}

func others(ctx context.Context, api *ClientWithResponses) {
	service, err := api.CreateServiceWithResponse(ctx, nil, ServiceCreate{ServiceName: "shop", Fqdn: "shop.example.com"})
	must("create service", err, service.HTTPResponse, 201, service.Body)
	var timeouts RouteConfig
	request := "2s"
	timeouts.Timeouts = &RouteConfigTimeouts{Request: &request}
	var config RouteCreate_RouteConfig
	if err := config.FromRouteConfig(timeouts); err != nil {
		fail("%s", err)
	}
	route, err := api.CreateRouteWithResponse(ctx, "shop", nil, RouteCreate{RouteName: "root", RoutePrefix: "/", RouteConfig: &config})
	must("create route", err, route.HTTPResponse, 201, route.Body)
	link, err := api.AttachRouteUpstreamWithResponse(ctx, "shop", "root", "blue", nil)
	must("attach", err, link.HTTPResponse, 201, link.Body)
	read, err := api.ReadRouteWithResponse(ctx, "shop", "root", nil)
	must("read route", err, read.HTTPResponse, 200, read.Body)
	if c := read.JSON200.Data.CoreDbRoute[0].RouteConfig; c.Timeouts == nil || *c.Timeouts.Request != "2s" {
		fail("read route: %s", read.Body)
	}
	proxy, err := api.CreateProxyWithResponse(ctx, nil, ProxyCreate{Name: "gw"})
	must("create proxy", err, proxy.HTTPResponse, 201, proxy.Body)
	used, err := api.DeleteUpstreamWithResponse(ctx, "blue", nil)
	must("delete what is in use", err, used.HTTPResponse, 409, used.Body)
	gone, err := api.DeleteServiceWithResponse(ctx, "shop", nil)
	must("delete service", err, gone.HTTPResponse, 200, gone.Body)
	deleted, err := api.DeleteProxyWithResponse(ctx, "gw", nil)
	must("delete proxy", err, deleted.HTTPResponse, 200, deleted.Body)
}
