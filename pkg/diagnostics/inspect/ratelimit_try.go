package inspect

import (
	"fmt"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

type (
	// RateLimitTried is what would be counted for a request in one state of the Envoys.
	RateLimitTried struct {
		// Basis is envoys or wanted, as for explain.
		Basis  string   `json:"basis"`
		Envoys []string `json:"envoys"`
		// Code is the code of explain.
		Code    string `json:"code"`
		Message string `json:"message"`
		Service string `json:"service,omitempty"`
		Route   string `json:"route,omitempty"`
		// Descriptors are in the order in which they are sent to the engine.
		Descriptors []triedDescriptor `json:"descriptors"`
	}
	// triedDescriptor is one descriptor that may be counted.
	triedDescriptor struct {
		// Config is the global config whose rates apply; empty if there is none for the
		// domain.
		Config  string          `json:"globalconfig_name,omitempty"`
		Domain  string          `json:"domain"`
		Sent    bool            `json:"sent"`
		Message string          `json:"message"`
		Entries []explain.Entry `json:"entries"`
		Limit   *explain.Limit  `json:"limit,omitempty"`
	}
)

// RateLimitTest returns the rates that an explained request meets. configs are all
// global configs.
func RateLimitTest(e Explained, configs []*model.GlobalConfig) RateLimitTried {
	byID := map[int64]*model.GlobalConfig{}
	for _, g := range configs {
		byID[g.ID] = g
	}
	basis, envoys := e.Basis()
	v := RateLimitTried{
		Basis: basis, Envoys: envoys, Code: e.Code, Service: e.Service, Route: e.Route, Descriptors: []triedDescriptor{},
	}
	met := 0
	for _, f := range e.Filters {
		for _, d := range f.Descriptors {
			t := triedDescriptor{Domain: d.Domain, Sent: d.Sent, Message: d.Message, Entries: d.Entries, Limit: d.Limit}
			if !d.Unknown {
				t.Config, t.Domain = domainNames(d.Domain, byID)
			}
			if d.Limit != nil {
				met++
			}
			v.Descriptors = append(v.Descriptors, t)
		}
	}
	switch {
	case e.Code != explain.Forwarded:
		v.Message = "nothing is counted: " + e.Message
	case len(v.Descriptors) == 0:
		v.Message = "nothing is counted: route " + e.Route + " has no rate limit"
	case met == 0:
		v.Message = "nothing is counted: no descriptor meets a rate"
	case met == 1:
		v.Message = "1 rate is met"
	default:
		v.Message = fmt.Sprintf("%d rates are met", met)
	}
	if len(e.UnknownFilters) > 0 {
		v.Message += "; the filter " + strings.Join(e.UnknownFilters, ", ") + " is not known, so it may be different"
	}
	return v
}

// domainNames returns both names of a domain as Envoy and the engine know it: that of
// the global config, empty if that is gone, and its own.
func domainNames(wire string, configs map[int64]*model.GlobalConfig) (config, domain string) {
	id, domain := limits.ParseWire(wire)
	g := configs[id]
	if g == nil {
		return "", domain
	}
	if d := limits.DomainOf(g.Parse()); d != nil {
		domain = d.Domain
	}
	return g.Name, domain
}
