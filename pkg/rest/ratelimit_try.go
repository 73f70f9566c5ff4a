package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// What GET /proxy/{proxy}/ratelimit/test shows of each state that the Envoys are
// in.
type (
	triedView struct {
		// Basis is envoys or wanted, as for explain.
		Basis  string   `json:"basis"`
		Envoys []string `json:"envoys"`
		// Code is that of explain.
		Code    string `json:"code"`
		Message string `json:"message"`
		Service string `json:"service,omitempty"`
		Route   string `json:"route,omitempty"`
		// Descriptors are in the order in which the engine is asked.
		Descriptors []triedDescriptor `json:"descriptors"`
	}
	triedDescriptor struct {
		// Config is the global config whose rates hold; empty where there is none
		// for the domain.
		Config  string          `json:"globalconfig_name,omitempty"`
		Domain  string          `json:"domain"`
		Sent    bool            `json:"sent"`
		Message string          `json:"message"`
		Entries []explain.Entry `json:"entries"`
		Limit   *explain.Limit  `json:"limit,omitempty"`
	}
)

func (s *server) addRateLimitTest() {
	s.get("/proxy/:proxy/ratelimit/test", s.tryRateLimits)
}

func (s *server) tryRateLimits(c *gin.Context) error {
	configs := map[int64]*model.GlobalConfig{}
	list, err := s.explained(c, func(r store.Reader) error {
		all, err := store.List[*model.GlobalConfig](r, store.Query{Kind: model.KindGlobalConfig})
		for _, g := range all {
			configs[g.ID] = g
		}
		return err
	})
	if err != nil {
		return err
	}
	views := make([]triedView, len(list))
	for i, e := range list {
		views[i] = tried(e, configs)
	}
	s.answer(c, s.word+"_ratelimit_test", views)
	return nil
}

func tried(e Explained, configs map[int64]*model.GlobalConfig) triedView {
	basis, envoys := e.basis()
	v := triedView{
		Basis: basis, Envoys: envoys, Code: e.Code, Service: e.Service, Route: e.Route, Descriptors: []triedDescriptor{},
	}
	met := 0
	for _, f := range e.Filters {
		for _, d := range f.Descriptors {
			t := triedDescriptor{Domain: d.Domain, Sent: d.Sent, Message: d.Message, Entries: d.Entries, Limit: d.Limit}
			if !d.Unknown {
				t.Config, t.Domain = known(d.Domain, configs)
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
	return v
}

// known are the names of a domain as the engine knows it (see
// compile.RateLimits): of the global config, empty when that is gone, and its own.
func known(wire string, configs map[int64]*model.GlobalConfig) (config, domain string) {
	id, domain, _ := strings.Cut(wire, "/")
	n, _ := strconv.ParseInt(id, 36, 64)
	g := configs[n]
	if g == nil {
		return "", domain
	}
	var c model.RateLimitConfig
	if json.Unmarshal([]byte(g.Config), &c) == nil {
		domain = c.Domain
	}
	return g.Name, domain
}
