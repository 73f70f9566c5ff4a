package rest

import (
	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func (s *server) addStatus() {
	s.get("/status", func(c *gin.Context) error {
		return s.readStatus(c, func(r store.Reader, _ names) (inspect.Scope, error) { return inspect.All(r) })
	})
	s.get("/proxy/:proxy/status", func(c *gin.Context) error {
		return s.readStatus(c, func(r store.Reader, n names) (inspect.Scope, error) {
			if err := checkExist(r, proxyAt(n)); err != nil {
				return inspect.Scope{}, err
			}
			return inspect.OfProxy(r, n[model.KindProxy])
		})
	})
	s.get("/proxy/:proxy/xds", s.readResources)
}

func (s *server) readStatus(c *gin.Context, read func(store.Reader, names) (inspect.Scope, error)) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var scope inspect.Scope
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		scope, err = read(r, n)
		return err
	})
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_status", []inspect.Status{s.live.StatusOf(c.Request.Context(), scope)})
	return nil
}
