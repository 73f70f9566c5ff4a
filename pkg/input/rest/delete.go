package rest

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// forceParameter deletes a proxy that is in use, and applies a document over later changes.
const forceParameter = "force"

// deleteObject deletes the object, or the link, at the end of the path. shown
// is what a read of the path shows; nil means that object.
func (s *server) deleteObject(c *gin.Context, kind model.Kind, shown func(names) model.Key) error {
	var own []string
	if kind == model.KindProxy {
		own = []string{forceParameter}
	}
	m, query, err := s.writeMode(c, own...)
	if err != nil {
		return err
	}
	force, err := isTrue(query, forceParameter)
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	done, err := s.write(c, m, func(w store.Writer) error {
		path := wayTo(kind, n)
		key := path[len(path)-1]
		if err := checkExist(w, path[:len(path)-1]); err != nil {
			return err
		}
		if err := checkPreconditionOfLink(c, w, key, shown, n); err != nil {
			return err
		}
		if kind == model.KindProxy && !force {
			if err := s.checkProxyIsUnused(w, key); err != nil {
				return err
			}
		}
		return store.Delete(w, key)
	})
	if err != nil {
		return err
	}
	s.answerWrite(c, http.StatusOK, "delete", kind, 1, done)
	return nil
}

// checkProxyIsUnused refuses to delete a proxy with services or connected Envoys: its listeners
// would close at once.
func (s *server) checkProxyIsUnused(r store.Reader, key model.Key) error {
	if _, err := r.Get(key); err != nil {
		return err
	}
	links, err := r.List(store.Query{Kind: model.KindProxyService, To: []model.Key{key}})
	if err != nil {
		return err
	}
	envoys := s.live.Connected(key.Name())
	if len(links) == 0 && envoys == 0 {
		return nil
	}
	e := &model.Error{
		Kind: model.InUse, Path: key.Path(),
		Message: fmt.Sprintf("proxy %q is in use: %s attached and %s connected", key.Name(), count(len(links), "service"),
			count(envoys, "Envoy")),
		Hint: "detach its services and stop its Envoys, or force it: ?force=true, gatehouse delete --force",
	}
	for _, link := range links[:min(len(links), store.MaxReferences)] {
		e.ReferencedBy = append(e.ReferencedBy, link.Key().Attached().Path())
	}
	return e
}

// count is "no thing is", "1 thing is" or "2 things are".
func count(n int, thing string) string {
	switch n {
	case 0:
		return "no " + thing + " is"
	case 1:
		return "1 " + thing + " is"
	}
	return fmt.Sprintf("%d %ss are", n, thing)
}
