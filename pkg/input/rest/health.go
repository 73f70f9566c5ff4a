package rest

import (
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// addHealth registers the two probes. They take no notice of query parameters,
// which some probes add.
func (s *server) addHealth() {
	s.addLiveness()
	s.get("/ready", func(c *gin.Context) error {
		if err := s.ready(); err != nil {
			s.writeNotReady(c, err)
			return nil
		}
		if err := s.store.Ping(c.Request.Context()); err != nil {
			return &model.Error{Kind: model.Unavailable, Message: "not ready: the database does not answer", Err: err}
		}
		s.writeJSON(c, http.StatusOK, "application/json", readiness{"ok", s.degraded()})
		return nil
	})
}

func (s *server) addLiveness() {
	s.get("/health", func(c *gin.Context) error {
		s.answerOK(c)
		return nil
	})
}

// writeNotReady answers a probe: there is nothing to warn about.
func (s *server) writeNotReady(c *gin.Context, why error) {
	s.writeProblem(c, newProblem(http.StatusServiceUnavailable, "unavailable", "not ready: "+why.Error()))
}

// Starting answers while there is no store yet: the process lives, and everything else is 503 with the reason, which
// why returns.
func Starting(log *slog.Logger, why func() error) http.Handler {
	s := newServer(Options{Log: log})
	s.router.Use(s.limitIdle, s.logRequest, s.recover)
	s.addLiveness()
	notReady := func(c *gin.Context) { s.writeNotReady(c, why()) }
	s.router.NoRoute(notReady)
	s.router.NoMethod(notReady)
	return s.router
}

// readiness is the answer of /ready.
type readiness struct {
	Status   string   `json:"status"`
	Degraded []string `json:"degraded,omitempty"`
}

func (s *server) answerOK(c *gin.Context) {
	s.writeJSON(c, http.StatusOK, "application/json", struct {
		Status string `json:"status"`
	}{"ok"})
}
