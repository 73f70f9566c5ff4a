package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// refuseWrites answers calls that would change a configuration that comes from elsewhere. What
// only reads is let through, a dry run and the test of a login too.
func (s *server) refuseWrites(c *gin.Context) {
	if s.elsewhere == nil || isSafe(c.Request.Method) || c.FullPath() == "" || c.FullPath() == loginTestPath || isSignIn(c) || isDryRun(c) {
		return
	}
	allow := []string{}
	for _, r := range s.router.Routes() {
		if r.Path == c.FullPath() && isRead(r.Method) && !slices.Contains(allow, r.Method) {
			allow = append(allow, r.Method)
		}
	}
	slices.Sort(allow)
	c.Writer.Header().Set("Allow", strings.Join(allow, ", ")) // empty: none is allowed (RFC 9110 section 10.2.1)
	s.fail(c, newProblem(http.StatusMethodNotAllowed, "configured_by_kubernetes", s.elsewhere(writtenBy(c))))
	c.Abort()
}

// isSignIn reports whether the call signs a browser in or out.
func isSignIn(c *gin.Context) bool {
	return slices.Contains([]string{sessionPath, beginPath, endPath}, c.FullPath())
}

// isDryRun reports whether the call asks for one. A handler that takes none refuses the
// parameter.
func isDryRun(c *gin.Context) bool { return c.Query("dry_run") == "true" }

// writtenBy is the object that a call would write, as far as its path says. That of a list has
// its kind and no name.
func writtenBy(c *gin.Context) model.Key {
	n, err := pathNames(c)
	if err != nil {
		n = names{}
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(c.FullPath(), "/"), "/")
	kind := model.Kind(first)
	if strings.Contains("/"+c.FullPath()+"/", "/"+string(kindToken)+"/") {
		return model.NewKey(kindToken)
	}
	if !slices.Contains(model.Kinds(), kind) || n[kind] == "" {
		return model.NewKey(kind)
	}
	return model.NewKey(kind, n[kind])
}
