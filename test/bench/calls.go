package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// caller sends calls to a control plane.
type caller struct {
	base   string
	client *http.Client
}

func newCaller(port int) caller {
	return caller{"http://" + local(port), &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience,
	}}
}

// send makes one call and reads its answer to the end.
func (c caller) send(ctx context.Context, method, path, contentType string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, resp.StatusCode, text)
	}
	return err
}

// ready waits until the program answers.
func (c caller) ready(ctx context.Context) error {
	return eventually(ctx, "the program to be ready", func() error { return c.send(ctx, http.MethodGet, "/ready", "", nil) })
}

// gatehouseCalls are the calls of the specification.
type gatehouseCalls struct {
	caller
	httpPort int // of the proxy
}

func (c gatehouseCalls) form(ctx context.Context, path string, fields ...string) error {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return c.send(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

func (c gatehouseCalls) services(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := c.form(ctx, "/service", "Service_Name", name, "fqdn", layout.FQDN(name)); err != nil {
			return err
		}
		if err := c.form(ctx, "/proxy/"+layout.Node+"/service/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (c gatehouseCalls) create(ctx context.Context, r layout.Route) error {
	err := c.form(ctx, "/upstream", "Upstream_name", r.Upstream, "Upstream_ip", layout.Address,
		"Upstream_port", strconv.Itoa(r.Port))
	if err != nil {
		return err
	}
	return c.form(ctx, "/service/"+r.Service+"/route", "Route_Name", r.Name, "Route_prefix", r.Prefix)
}

func (c gatehouseCalls) attach(ctx context.Context, r layout.Route) error {
	return c.form(ctx, "/service/"+r.Service+"/route/"+r.Name+"/upstream/"+r.Upstream)
}

func (c gatehouseCalls) add(ctx context.Context, r layout.Route) error {
	if err := c.create(ctx, r); err != nil {
		return err
	}
	return c.attach(ctx, r)
}

func (c gatehouseCalls) remove(ctx context.Context, r layout.Route) error {
	if err := c.send(ctx, http.MethodDelete, "/service/"+r.Service+"/route/"+r.Name, "", nil); err != nil {
		return err
	}
	return c.send(ctx, http.MethodDelete, "/upstream/"+r.Upstream, "", nil)
}

// document has the settings of the proxy that seed makes.
func (c gatehouseCalls) document(routes []layout.Route) ([]byte, error) {
	type object map[string]any
	var upstreams, services []object
	byName := map[string]object{}
	var names []string
	for _, r := range routes {
		upstreams = append(upstreams, object{"upstream_name": r.Upstream, "upstream_ip": layout.Address, "upstream_port": r.Port})
		s := byName[r.Service]
		if s == nil {
			s = object{"service_name": r.Service, "fqdn": r.FQDN(), "routes": []object(nil)}
			byName[r.Service] = s
			services, names = append(services, s), append(names, r.Service)
		}
		s["routes"] = append(s["routes"].([]object), object{
			"route_name": r.Name, "route_prefix": r.Prefix, "upstreams": []string{r.Upstream},
		})
	}
	return json.Marshal(object{"version": 1, "upstreams": upstreams, "services": services, "proxies": []object{{
		"name": layout.Node, "listen_ip": layout.Address, "http_port": c.httpPort, "https_port": httpsPort(c.httpPort), "services": names,
	}}})
}

func (c gatehouseCalls) load(ctx context.Context, document []byte) error {
	return c.send(ctx, http.MethodPut, "/config", "application/json", document)
}

// yamlCalls are the calls of Gatehouse with the document in YAML.
type yamlCalls struct{ gatehouseCalls }

func (c yamlCalls) document(routes []layout.Route) ([]byte, error) {
	text, err := c.gatehouseCalls.document(routes)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(text)
}

func (c yamlCalls) load(ctx context.Context, document []byte) error {
	return c.send(ctx, http.MethodPut, "/config", "application/yaml", document)
}

// handed returns when the newest route configuration was passed to gRPC.
func (c gatehouseCalls) handed(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/status", nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	type envoy struct {
		Types []struct {
			Type string
			Sent struct{ At time.Time }
		}
	}
	var answer struct {
		Data struct {
			Status []struct{ Proxies []struct{ Envoys []envoy } } `json:"core_db_status"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return time.Time{}, fmt.Errorf("reading the status: %w", err)
	}
	for _, status := range answer.Data.Status {
		for _, proxy := range status.Proxies {
			for _, e := range proxy.Envoys {
				for _, t := range e.Types {
					if t.Type == "route" {
						return t.Sent.At, nil
					}
				}
			}
		}
	}
	return time.Time{}, errors.New("the status tells of no route configuration that was sent")
}

// floorCalls are the calls of test/bench/floor.
type floorCalls struct{ caller }

func (c floorCalls) route(ctx context.Context, call string, r layout.Route) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	method, path, _ := strings.Cut(call, " ")
	return c.send(ctx, method, path, "application/json", text)
}

// services come with their first route.
func (c floorCalls) services(context.Context, []string) error { return nil }

func (c floorCalls) create(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "POST /route", r)
}

func (c floorCalls) attach(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "POST /upstream", r)
}

func (c floorCalls) add(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "POST /both", r)
}

func (c floorCalls) remove(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "DELETE /route", r)
}

func (c floorCalls) document(routes []layout.Route) ([]byte, error) { return json.Marshal(routes) }

func (c floorCalls) load(ctx context.Context, document []byte) error {
	return c.send(ctx, http.MethodPut, "/routes", "application/json", document)
}
