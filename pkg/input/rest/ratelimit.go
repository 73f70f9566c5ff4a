package rest

import (
	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func (s *server) addRateLimits() {
	s.get("/proxy/:proxy/ratelimit", s.readRateLimits)
	s.get("/proxy/:proxy/ratelimit/test", s.tryRateLimits)
}

func (s *server) readRateLimits(c *gin.Context) error {
	if _, err := readQuery(c, nil); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var scope inspect.RateLimitScope
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if err := checkExist(r, proxyAt(n)); err != nil {
			return err
		}
		scope, err = inspect.RateLimitsOf(r, n[model.KindProxy])
		return err
	})
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_ratelimit", s.live.RateLimitStatus(c.Request.Context(), scope))
	return nil
}

func (s *server) tryRateLimits(c *gin.Context) error {
	var configs []*model.GlobalConfig
	list, err := s.explainQuery(c, func(r store.Reader) (err error) {
		configs, err = store.List[*model.GlobalConfig](r, store.Query{Kind: model.KindGlobalConfig})
		return err
	})
	if err != nil {
		return err
	}
	views := make([]inspect.RateLimitTried, len(list))
	for i, e := range list {
		views[i] = inspect.RateLimitTest(e, configs)
	}
	s.answer(c, s.word+"_ratelimit_test", views)
	return nil
}
