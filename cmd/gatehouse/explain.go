package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/client"
)

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain PROXY URL",
		Short: "Show what a request meets: service, route, upstreams, and why",
		Long: `Shows what the Envoys of a proxy do with a request: the service and the route that
take it, why the routes before do not, what the upstream sees, and each answer
that the gateway gives by itself. Nothing is sent to an Envoy.`,
		Example: `  gatehouse explain gw http://shop.example.com/cart
  gatehouse explain gw 'http://shop.example.com/cart?a=b' -X POST -H 'x-tier: gold'
  gatehouse explain gw http://127.0.0.1:8080/cart -H 'Host: shop.example.com' -o json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeProxyFirst,
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := requestQuery(cmd, args[1])
			if err != nil {
				return err
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			return r.showExplained(cmd, client.Request{Method: http.MethodGet, Path: client.Path("proxy", args[0], "explain"), Query: query})
		},
	}
	return withFormat(withServer(withRequest(cmd)), "", formatTable, formatJSON, formatYAML)
}

// withRequest gives cmd the flags that describe a request.
func withRequest(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringP("method", "X", "", "method of the request (default: GET)")
	cmd.Flags().StringArrayP("header", "H", nil, "header of the request, 'name: value'; may be repeated")
	cmd.Flags().String("address", "", "address of the connection: the client's, or with trusted hops that of the last proxy in front (default: 127.0.0.1)")
	return cmd
}

// requestQuery describes the request of withRequest's flags to the API.
func requestQuery(cmd *cobra.Command, target string) (url.Values, error) {
	query := url.Values{"url": {target}}
	for _, name := range []string{"method", "address"} {
		if value := text(cmd, name); value != "" {
			query.Set(name, value)
		}
	}
	lines, err := cmd.Flags().GetStringArray("header")
	query["header"] = lines
	return query, err
}

// completeProxyFirst completes the name of a proxy, and nothing behind it.
func completeProxyFirst(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeObject(cmd, []string{"proxy"}, typed)
}

// explained is an answer of GET /proxy/{proxy}/explain.
type explained struct {
	Envoys                                        []string
	Code, Message, Location, Body, Service, Route string
	Status                                        int
	Request                                       struct{ Method, Host, Path, Query string }
	Steps                                         []struct{ Code, Message string }
	Hosts                                         []struct{ Service, Domain, Kind, Message string }
	Routes                                        []struct {
		Route   string
		Matches bool
		Checks  []struct {
			Holds   bool
			Message string
		}
	}
	Filters []struct {
		Name, Message string
		Descriptors   []struct {
			Sent    bool
			Message string
		}
	}
	Forward *struct {
		Host, Path, Timeout string
		IdleTimeout         string `json:"idle_timeout"`
		Retries             *struct {
			Attempts int
			On       string
		}
		Clusters []struct {
			Name      string
			Endpoints []struct {
				Upstream, Address, Health string
				Port                      int
				Percent                   float64
			}
		}
	}
	Envoy struct {
		Listener           string
		RouteConfiguration string `json:"route_configuration"`
		VirtualHost        string `json:"virtual_host"`
		Route              string
		Clusters           []string
	}
}

func (r *remote) showExplained(cmd *cobra.Command, req client.Request) error {
	var answer client.Answer
	err := r.call(cmd.Context(), func() (err error) {
		answer, err = r.Do(cmd.Context(), req)
		return err
	})
	if err != nil {
		return err
	}
	var data map[string]json.RawMessage // one key, whose word is a setting
	var list []explained
	err = json.Unmarshal(answer.Data, &data)
	for _, raw := range data {
		if err == nil && r.format != formatTable {
			return r.write(raw)
		}
		err = errors.Join(err, json.Unmarshal(raw, &list))
	}
	if err != nil {
		return &runError{fmt.Errorf("reading the explanation: %w", err)}
	}
	p := printer{w: r.out}
	for i, e := range list {
		if i > 0 {
			p.line("")
		}
		e.print(&p)
	}
	return p.done()
}

func (e explained) print(p *printer) {
	say := func(format string, args ...any) {
		p.line("%s", strings.TrimRight(client.Printable(fmt.Sprintf(format, args...)), " "))
	}
	say("%s (%s)", e.Message, e.Code)
	say("from: %s", origin(e.Envoys))
	if e.Status > 0 {
		say("answer: %d %s%s", e.Status, e.Location, strings.TrimSpace(e.Body)) // a body has no location
	}
	say("steps:")
	for _, s := range e.Steps {
		say("  %s", s.Message)
	}
	head := func(title string, n int) {
		if n > 0 {
			say("%s:", title)
		}
	}
	head("hosts", len(e.Hosts))
	for i, h := range e.Hosts {
		say("  %s %s: service %s %s", mark(i == 0), h.Domain, h.Service, h.Message)
	}
	head("routes", len(e.Routes))
	for _, route := range e.Routes {
		say("  %s %s", mark(route.Matches), route.Route)
		for _, c := range route.Checks {
			say("      %s %s", mark(c.Holds), c.Message)
		}
	}
	head("filters", len(e.Filters))
	for _, f := range e.Filters {
		say("  %s %s", f.Name, f.Message)
		for _, d := range f.Descriptors {
			say("      %s %s", mark(d.Sent), d.Message)
		}
	}
	if e.Forward != nil {
		e.printForward(say)
	}
	say("envoy: listener %q, route configuration %q, virtual host %q, route %q, clusters %q",
		e.Envoy.Listener, e.Envoy.RouteConfiguration, e.Envoy.VirtualHost, e.Envoy.Route, e.Envoy.Clusters)
}

// origin says what an answer comes from.
func origin(envoys []string) string {
	if len(envoys) == 0 {
		return "no Envoy is connected; this is what one should do"
	}
	return count(len(envoys), "Envoy", "Envoys") + ": " + strings.Join(envoys, ", ")
}

func (e explained) printForward(say func(format string, args ...any)) {
	f := e.Forward
	say("upstream sees: %s %s, Host: %s", e.Request.Method, f.Path, f.Host)
	say("upstreams:")
	for _, c := range f.Clusters {
		for _, up := range c.Endpoints {
			say("  %5.1f%%  %s %s:%d (cluster %s) %s", up.Percent, up.Upstream, up.Address, up.Port, c.Name, up.Health)
		}
	}
	retries := "none"
	if f.Retries != nil {
		retries = fmt.Sprintf("%d on %s", f.Retries.Attempts, f.Retries.On)
	}
	say("time-outs: request %s, idle %s; retries: %s", f.Timeout, f.IdleTimeout, retries)
}

func mark(yes bool) string {
	if yes {
		return "+"
	}
	return "-"
}
