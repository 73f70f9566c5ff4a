package rest

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
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
	s.change(http.MethodPost, "/proxy/:proxy/explain", s.explainDraft)
}

func (s *server) explainRequest(c *gin.Context) error {
	list, err := s.explainQuery(c, func(store.Reader) error { return nil })
	if err != nil {
		return err
	}
	return s.answerExplained(c, list)
}

func (s *server) answerExplained(c *gin.Context, list []inspect.Explained) error {
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

// explainDraft explains the request that the query describes as if the document in the body were applied. It is a dry
// run: whoever may not apply the document gets the same refusal.
func (s *server) explainDraft(c *gin.Context) error {
	n, r, err := askedRequest(c)
	if err != nil {
		return err
	}
	doc, leave, err := s.takeDocument(c)
	if err != nil {
		return err
	}
	defer leave()
	// It is read before the transaction begins: the build loop reads the store, too.
	draft, err := s.live.Drafts(c.Request.Context())
	if err != nil {
		return err
	}
	var list []inspect.Explained
	m := mode{dry: true, asks: func(w store.Writer) error {
		var changes []model.Entry
		for change, err := range w.Written()() {
			if err != nil {
				return err
			}
			changes = append(changes, model.Entry{Key: change.Key, Object: change.After})
		}
		e, err := draft(n[model.KindProxy], changes, r)
		list = []inspect.Explained{e}
		if err != nil {
			return err
		}
		return s.nameExplained(w, n[model.KindProxy], list)
	}}
	_, err = s.write(c, m, func(w store.Writer) error {
		if err := checkExist(w, proxyAt(n)); err != nil {
			return err
		}
		_, err := document.Apply(w, doc, document.ApplyOptions{NewProxy: s.newProxy})
		return err
	})
	if err != nil {
		return err
	}
	return s.answerExplained(c, list)
}

// askedRequest returns the request that the query describes.
func askedRequest(c *gin.Context) (names, explain.Request, error) {
	query, err := readQuery(c, []string{"method", "url", "header", "address"}, "header")
	if err != nil {
		return nil, explain.Request{}, err
	}
	n, err := pathNames(c)
	if err != nil {
		return nil, explain.Request{}, err
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
	return n, r, invalidFields(errs)
}

// explainQuery explains the request that the query describes; more is read beside
// it.
func (s *server) explainQuery(c *gin.Context, more func(store.Reader) error) ([]inspect.Explained, error) {
	n, r, err := askedRequest(c)
	if err != nil {
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
	return list, s.read(c.Request.Context(), func(r store.Reader) error { return s.nameExplained(r, n[model.KindProxy], list) })
}

// nameExplained adds to the answers what is known beside the configuration of Envoys.
func (s *server) nameExplained(r store.Reader, proxy string, list []inspect.Explained) error {
	if err := s.live.NameObjects(r, proxy, list); err != nil {
		return err
	}
	return s.nameCertificates(r, list)
}
