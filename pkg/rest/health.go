package rest

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addHealth registers the two probes. They take no notice of query parameters,
// which some probes add.
func (s *server) addHealth() {
	s.get("/health", func(c *gin.Context) error {
		s.answerOK(c)
		return nil
	})
	s.get("/ready", func(c *gin.Context) error {
		if err := s.ready(); err != nil {
			// The answer to a probe, and nothing to warn about.
			s.writeProblem(c, newProblem(http.StatusServiceUnavailable, "unavailable", "not ready: "+err.Error()))
			return nil
		}
		if err := s.store.Ping(c.Request.Context()); err != nil {
			return &model.Error{Kind: model.Unavailable, Message: "not ready: the database does not answer", Err: err}
		}
		s.writeJSON(c, http.StatusOK, "application/json", readiness{"ok", s.degraded()})
		return nil
	})
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
