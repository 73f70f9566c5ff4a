package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// screen is the number of lines that explain shows unless it is asked for all:
// those of the smallest terminal.
const screen = 24

// explanation is an answer of GET /proxy/{proxy}/explain.
type explanation struct {
	Envoys                                        []string
	Code, Message, Location, Body, Service, Route string
	Status                                        int
	Request                                       struct{ Method, Host, Path, Query string }
	Steps                                         []struct{ Code, Message string }
	TLS                                           *struct {
		Certificates []explainedCertificate
		Others       []explainedCertificate `json:"other_certificates"`
	}
	Hosts      []struct{ Service, Domain, Kind, Message string }
	Routes     []explainedRoute
	Later      []explainedRoute `json:"later_routes"`
	MoreRoutes int              `json:"more_routes"`
	Filters    []struct {
		Name, Message string
		From          []string
		Descriptors   []struct {
			Sent    bool
			Message string
		}
	}
	UnknownFilters []string `json:"unknown_filters"`
	Forward        *explainedForward
	Envoy          struct {
		Listener           string
		FilterChain        string `json:"filter_chain"`
		RouteConfiguration string `json:"route_configuration"`
		VirtualHost        string `json:"virtual_host"`
		Route              string
		Clusters           []string
	}
}

type explainedForward struct {
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
			HealthMessage             string `json:"health_message"`
			Port, Priority            int
			Percent                   float64
		}
	}
}

type explainedRoute struct {
	Route, Message string
	Matches        bool
	Checks         []struct {
		Holds   bool
		Message string
	}
}

type explainedCertificate struct {
	Secret   string
	Names    []string
	KeyType  string    `json:"key_type"`
	NotAfter time.Time `json:"not_after"`
	Source   string
	Host     string
	DaysLeft int `json:"days_left"`
	Error    string
	Advice   string
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
	var list []explanation
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
	for _, line := range show(list, isSet(cmd, "all")) {
		p.line("%s", line)
	}
	return p.outputError()
}

// sheet is lines of text.
type sheet []string

func (s *sheet) addLine(format string, args ...any) {
	*s = append(*s, strings.TrimRight(client.Printable(fmt.Sprintf(format, args...)), " "))
}

// show is everything, or where that is more than a screen what matters most.
func show(list []explanation, all bool) []string {
	var full sheet
	for i, e := range list {
		if i > 0 {
			full.addLine("")
		}
		e.addAll(&full)
	}
	if all || len(full) <= screen {
		return full
	}
	brief := shorten(list)
	brief.addLine("(%d of %d lines; --all shows everything)", len(brief)+1, len(full))
	return brief
}

func (e explanation) addHead(s *sheet) {
	s.addLine("%s (%s)", e.Message, e.Code)
	if len(e.UnknownFilters) > 0 {
		s.addLine("not known: filter %s; the answer may be different", strings.Join(e.UnknownFilters, ", "))
	}
	s.addLine("from: %s", basisText(e.Envoys))
	if e.Status > 0 {
		s.addLine("answer: %d %s%s", e.Status, e.Location, strings.TrimSpace(e.Body)) // a body has no location
	}
}

func (e explanation) addAll(s *sheet) {
	e.addHead(s)
	s.addLine("steps:")
	for _, step := range e.Steps {
		s.addLine("  %s", step.Message)
	}
	head := func(title string, n int) {
		if n > 0 {
			s.addLine("%s:", title)
		}
	}
	e.addCertificates(s)
	head("hosts", len(e.Hosts))
	for i, h := range e.Hosts {
		s.addLine("  %s %s: service %s %s", sign(i == 0), h.Domain, h.Service, h.Message)
	}
	addRoutes := func(list []explainedRoute) {
		for _, route := range list {
			s.addLine("  %s %s %s", sign(route.Matches), route.Route, route.Message)
			for _, c := range route.Checks {
				s.addLine("      %s %s", sign(c.Holds), c.Message)
			}
		}
	}
	head("routes", len(e.Routes))
	addRoutes(e.Routes)
	head("routes behind it", len(e.Later))
	addRoutes(e.Later)
	if e.MoreRoutes > 0 {
		s.addLine("  and %d more", e.MoreRoutes)
	}
	head("filters", len(e.Filters))
	for _, f := range e.Filters {
		from := ""
		if len(f.From) > 0 {
			from = " (" + strings.Join(f.From, ", ") + ")"
		}
		s.addLine("  %s %s%s", f.Name, f.Message, from)
		for _, d := range f.Descriptors {
			s.addLine("      %s %s", sign(d.Sent), d.Message)
		}
	}
	if e.Forward != nil {
		e.addForward(s, len(e.Forward.upstreams()))
	}
	chain := ""
	if e.Envoy.FilterChain != "" {
		chain = fmt.Sprintf(", filter chain %q", e.Envoy.FilterChain)
	}
	s.addLine("envoy: listener %q%s, route configuration %q, virtual host %q, route %q, clusters %q",
		e.Envoy.Listener, chain, e.Envoy.RouteConfiguration, e.Envoy.VirtualHost, e.Envoy.Route, e.Envoy.Clusters)
}

// addCertificates adds those for the host name of an https URL.
func (e explanation) addCertificates(s *sheet) {
	if e.TLS == nil || len(e.TLS.Certificates) == 0 {
		return
	}
	s.addLine("certificates:")
	for i, c := range slices.Concat(e.TLS.Certificates, e.TLS.Others) {
		s.addLine("  %s secret %s (%s, ends %s): %s", sign(i < len(e.TLS.Certificates)), c.Secret, c.KeyType,
			c.NotAfter.UTC().Format(time.DateOnly), strings.Join(c.Names, ", "))
		if c.Source != "" {
			s.addLine("    %s", c.origin())
		}
	}
}

// origin says where a certificate comes from, how long it lasts, and what is wrong.
func (c explainedCertificate) origin() string {
	text := map[string]string{
		"secret": "written as a secret", "file": "from the directory of certificates", "automatic": "ordered by the gateway for " + c.Host,
		"placeholder": "signed by the gateway itself until there is one for " + c.Host,
	}[c.Source]
	text += ", " + plural(c.DaysLeft, "day", "days") + " left"
	if c.Error != "" {
		text += "; the last attempt failed: " + c.Error
	}
	if c.Advice != "" {
		text += " -> " + c.Advice
	}
	return text
}

// basisText says which Envoys an answer is based on.
func basisText(envoys []string) string {
	if len(envoys) == 0 {
		return "no Envoy is connected; this is what one should do"
	}
	return plural(len(envoys), "Envoy", "Envoys") + ": " + strings.Join(envoys, ", ")
}

// upstreams are the lines of the upstreams, those that fail first.
func (f *explainedForward) upstreams() []string {
	var failing, list []string
	for _, c := range f.Clusters {
		for _, up := range c.Endpoints {
			at := up.Address
			if up.Port > 0 { // otherwise it is a Unix socket
				at += ":" + strconv.Itoa(up.Port)
			}
			line := fmt.Sprintf("  %5.1f%%  %s %s (cluster %s) %s", up.Percent, up.Upstream, at, c.Name, up.Health)
			if up.Priority > 0 {
				line += fmt.Sprintf(" (priority %d)", up.Priority)
			}
			if up.HealthMessage != "" {
				line += ": " + up.HealthMessage
			}
			switch up.Health {
			case "failing", "unhealthy", "ejected", "unresolved":
				failing = append(failing, line)
			default:
				list = append(list, line)
			}
		}
	}
	return append(failing, list...)
}

// addForward adds where the request goes, with so many upstreams at most.
func (e explanation) addForward(s *sheet, most int) {
	f := e.Forward
	s.addLine("upstream sees: %s %s, Host: %s", e.Request.Method, f.Path, f.Host)
	s.addLine("upstreams:")
	list := f.upstreams()
	for _, line := range list[:min(most, len(list))] {
		s.addLine("%s", line)
	}
	if more := len(list) - most; more > 0 {
		s.addLine("  and %d more", more)
	}
	retries := "none"
	if f.Retries != nil {
		retries = fmt.Sprintf("%d on %s", f.Retries.Attempts, f.Retries.On)
	}
	s.addLine("timeouts: request %s, idle %s; retries: %s", f.Timeout, f.IdleTimeout, retries)
}
