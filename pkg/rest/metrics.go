package rest

import "github.com/gin-gonic/gin"

// addMetrics registers the metrics, which somebody else gathers.
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
