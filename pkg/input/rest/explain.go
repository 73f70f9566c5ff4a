package rest

import (
	"fmt"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

type explainView struct {
	// Basis is envoys or wanted.
	Basis  string   `json:"basis"`
	Envoys []string `json:"envoys"`
	// Elsewhere tells of the Envoys of other replicas.
	Elsewhere []inspect.Elsewhere `json:"elsewhere,omitempty"`
	explain.Answer
}

func (s *server) addExplain() {
	s.get("/proxy/:proxy/explain", s.explainRequest)
}

func (s *server) explainRequest(c *gin.Context) error {
	list, err := s.explainQuery(c, func(store.Reader) error { return nil })
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	elsewhere := s.live.ElsewhereOf(n[model.KindProxy])
	views := make([]explainView, len(list))
	for i, e := range list {
		basis, envoys := e.Basis()
		views[i] = explainView{basis, envoys, elsewhere, e.Answer}
	}
	s.answer(c, s.word+"_explain", views)
	return nil
}

// explainQuery explains the request that the query describes; more is read beside
// it.
func (s *server) explainQuery(c *gin.Context, more func(store.Reader) error) ([]inspect.Explained, error) {
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
		errs = append(errs, model.FieldError{Field: "method", Message: "is empty; omit it for GET"})
	}
	if query.Has("address") {
		if r.Client, err = netip.ParseAddr(query.Get("address")); err != nil || r.Client.Zone() != "" {
			errs = append(errs, model.FieldError{
				Field: "address", Message: fmt.Sprintf("%q is not an IPv4 or IPv6 address", query.Get("address")),
			})
		}
	}
	if err := invalidFields(errs); err != nil {
		return nil, err
	}
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if err := checkExist(r, proxyAt(n)); err != nil {
			return err
		}
		return more(r)
	})
	if err != nil {
		return nil, err
	}
	list, err := s.live.Explain(c.Request.Context(), n[model.KindProxy], r)
	if err != nil {
		return nil, err
	}
	return list, s.read(c.Request.Context(), func(r store.Reader) error { return s.live.NameObjects(r, n[model.KindProxy], list) })
}
