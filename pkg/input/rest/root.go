package rest

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// addRoot registers links that lead on; a browser gets the console instead. It needs no token: it is the same in
// every copy of the program.
func (s *server) addRoot() {
	s.get("/", func(c *gin.Context) error {
		c.Header("Vary", "Accept")
		accept := strings.Join(c.Request.Header.Values("Accept"), ",")
		if strings.Contains(accept, "text/html") && accepts(accept, "text/html") {
			return redirectTo(c, "ui/")
		}
		s.writeJSON(c, http.StatusOK, "application/json", struct {
			Name    string `json:"name"`
			Console string `json:"console"`
			Docs    string `json:"docs"`
			OpenAPI string `json:"openapi"`
			Config  string `json:"config"`
			Status  string `json:"status"`
			Ready   string `json:"ready"`
		}{"Gatehouse", "/ui/", "/docs", "/openapi.yaml", "/config", "/status", "/ready"})
		return nil
	})
}
