package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// etag names the state of an object. It is made of what is stored, so that it
// also changes with what reads do not show.
func etag(obj model.Object) string {
	b, err := json.Marshal(obj)
	if err != nil {
		panic("encoding object: " + err.Error()) // what is stored was encoded before
	}
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// setETag names the state that a write has made.
func setETag(c *gin.Context, obj model.Object, dry bool) {
	if !dry {
		c.Header("ETag", etag(obj))
	}
}

// setCreated says where what a write has made is, and which state a read of it
// shows.
func setCreated(c *gin.Context, key model.Key, shown model.Object, dry bool) {
	if !dry {
		c.Header("Location", key.Path())
	}
	setETag(c, shown, dry)
}

// isCurrent sets the ETag of a read and reports whether the client has that
// state already (RFC 9110 section 13.1.2).
func isCurrent(c *gin.Context, obj model.Object) bool {
	tag := etag(obj)
	c.Header("ETag", tag)
	return matches(c.Request.Header.Values("If-None-Match"), tag)
}

// checkPrecondition refuses a write whose If-Match or If-None-Match does not
// hold (RFC 9110 section 13.1). It reads in the transaction that writes.
func checkPrecondition(c *gin.Context, r store.Reader, key model.Key) error {
	match, noneMatch := c.Request.Header.Values("If-Match"), c.Request.Header.Values("If-None-Match")
	if len(match) == 0 && len(noneMatch) == 0 {
		return nil
	}
	tag := ""
	obj, err := r.Get(key)
	switch {
	case err == nil:
		tag = etag(obj)
	case !model.IsKind(err, model.NotFound):
		return err
	}
	switch {
	case len(match) > 0 && !matches(match, tag):
		return newProblem(http.StatusPreconditionFailed, "precondition_failed",
			key.Path()+" does not match If-Match; read it again, then repeat the change")
	case len(noneMatch) > 0 && matches(noneMatch, tag):
		return newProblem(http.StatusPreconditionFailed, "precondition_failed",
			key.Path()+" already exists, which If-None-Match excludes")
	}
	return nil
}

// checkPreconditionOfLink is checkPrecondition for a path that may be that of a
// link, a read of which shows another object.
func checkPreconditionOfLink(
	c *gin.Context, r store.Reader, key model.Key, shown func(names) model.Key, n names,
) error {
	if shown == nil {
		return checkPrecondition(c, r, key)
	}
	if _, err := r.Get(key); err != nil {
		return err
	}
	return checkPrecondition(c, r, shown(n))
}

// matches reports whether a list of entity tags names tag; "" is the tag of
// what is not there.
func matches(values []string, tag string) bool {
	if tag == "" {
		return false
	}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if part == "*" || part == tag {
			return true
		}
	}
	return false
}
