package rest

import "github.com/gin-gonic/gin"

// addMetrics adds the call that answers with Options.Metrics.
func (s *server) addMetrics() {
	s.get("/metrics", func(c *gin.Context) error {
		if err := noQuery(c); err != nil {
			return err
		}
		if s.metrics == nil {
			s.noRoute(c)
			return nil
		}
		s.metrics.ServeHTTP(c.Writer, c.Request)
		return nil
	})
}
