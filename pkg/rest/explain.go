package rest

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// Explain answers what the Envoys of a proxy do with a request: one answer for
// each different state that they are in. While none has a state that is known,
// the answer is what they should do.
type Explain func(ctx context.Context, proxy string, r explain.Request) ([]Explained, error)

// Explained is an answer and the addresses of the Envoys that it holds for;
// none means that it comes from what Envoys should have.
type Explained struct {
	Envoys []string
	explain.Answer
}

// explainNothing is the Explain of an API without Envoys.
func explainNothing(_ context.Context, _ string, r explain.Request) ([]Explained, error) {
	a, err := explain.Explain(explain.State{}, r)
	return []Explained{{Answer: a}}, err
}

type explainView struct {
	// Basis is envoys or wanted.
	Basis  string   `json:"basis"`
	Envoys []string `json:"envoys"`
	explain.Answer
}

func (s *server) addExplain() {
	s.get("/proxy/:proxy/explain", s.explainRequest)
}

func (s *server) explainRequest(c *gin.Context) error {
	list, err := s.explained(c, func(store.Reader) error { return nil })
	if err != nil {
		return err
	}
	views := make([]explainView, len(list))
	for i, e := range list {
		basis, envoys := e.basis()
		views[i] = explainView{basis, envoys, e.Answer}
	}
	s.answer(c, s.word+"_explain", views)
	return nil
}

// basis says what an answer comes from.
func (e Explained) basis() (basis string, envoys []string) {
	if len(e.Envoys) == 0 {
		return "wanted", []string{}
	}
	return "envoys", e.Envoys
}

// explained explains the request that the query describes; more is read beside
// it.
func (s *server) explained(c *gin.Context, more func(store.Reader) error) ([]Explained, error) {
	query, err := readQuery(c, []string{"method", "url", "header", "address"}, "header")
	if err != nil {
		return nil, err
	}
	n, err := pathNames(c)
	if err != nil {
		return nil, err
	}
	r, errs := explain.NewRequest(query.Get("method"), query.Get("url"), query["header"])
	if query.Has("method") && query.Get("method") == "" {
		errs = append(errs, model.FieldError{Field: "method", Message: "is empty; leave it out for GET"})
	}
	if query.Has("address") {
		if r.Client, err = netip.ParseAddr(query.Get("address")); err != nil || r.Client.Zone() != "" {
			errs = append(errs, model.FieldError{Field: "address", Message: fmt.Sprintf("%q is not an IPv4 or IPv6 address", query.Get("address"))})
		}
	}
	if err := invalidFields(errs); err != nil {
		return nil, err
	}
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if err := exist(r, proxyAt(n)); err != nil {
			return err
		}
		return more(r)
	})
	if err != nil {
		return nil, err
	}
	return s.explain(c.Request.Context(), n[model.KindProxy], r)
}
