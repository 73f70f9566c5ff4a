package rest

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// rootPolicy makes a browser load nothing.
const rootPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; " +
	"form-action 'none'"

// rootPage is what a browser shows at the root of the API.
const rootPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gatehouse API</title>
<style>body { font: 16px/1.6 sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em }</style>
</head>
<body>
<h1>Gatehouse</h1>
<p>This is the REST API of an API gateway. The gateway itself listens on another port, 8080 by default.</p>
<ul>
<li><a href="/docs/">The documentation</a></li>
<li><a href="/docs/api/">The calls of the API</a>, to read and to try (<a href="/openapi.yaml">OpenAPI document</a>)</li>
<li><a href="/config">The whole configuration</a></li>
<li><a href="/status">What the Envoys have</a></li>
<li><a href="/ready">Whether the gateway is ready</a></li>
</ul>
</body>
</html>
`

// addRoot registers a page that leads on. It needs no token: it is the same in
// every copy of the program.
func (s *server) addRoot() {
	s.get("/", func(c *gin.Context) error {
		c.Header("Vary", "Accept")
		accept := strings.Join(c.Request.Header.Values("Accept"), ",")
		if strings.Contains(accept, "text/html") && accepts(accept, "text/html") {
			c.Header("Content-Security-Policy", rootPolicy)
			c.Header("X-Content-Type-Options", "nosniff")
			c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(rootPage))
			return nil
		}
		s.writeJSON(c, http.StatusOK, "application/json", struct {
			Name    string `json:"name"`
			Docs    string `json:"docs"`
			OpenAPI string `json:"openapi"`
			Config  string `json:"config"`
			Status  string `json:"status"`
			Ready   string `json:"ready"`
		}{"Gatehouse", "/docs", "/openapi.yaml", "/config", "/status", "/ready"})
		return nil
	})
}
