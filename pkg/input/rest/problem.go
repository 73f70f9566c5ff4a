package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// problem is an error answer (RFC 9457).
type problem struct {
	Type         string             `json:"type"`
	Title        string             `json:"title"`
	Status       int                `json:"status"`
	Detail       string             `json:"detail,omitempty"`
	Instance     string             `json:"instance"`
	Code         string             `json:"code"`
	Errors       []model.FieldError `json:"errors,omitempty"`
	ReferencedBy []string           `json:"referenced_by,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

// The bounds of an error answer, so that a hostile body is not sent back
// many times its size.
const (
	maxFieldErrors = 100
	maxMessage     = 1000 // bytes
)

// newProblem makes a problem of a stable code. The type is a name and no
// address: there is nothing to fetch (RFC 9457 section 3.1.1).
func newProblem(status int, code, detail string) *problem {
	return &problem{
		Type: "urn:gatehouse:problem:" + code, Title: titleOf(code),
		Status: status, Detail: detail, Code: code,
	}
}

func titleOf(code string) string {
	return map[string]string{
		"invalid_fields":         "Fields are missing or wrong",
		"malformed_body":         "The body cannot be read",
		"unknown_name":           "A name does not exist",
		"already_exists":         "The name is taken",
		"in_use":                 "The object is in use",
		"conflict":               "It conflicts with the current state",
		"cannot_work":            "It cannot become a working configuration",
		"compacted":              "The history does not go back that far",
		"precondition_failed":    "A precondition failed",
		"unsupported_media_type": "The content type is not supported",
		"body_too_large":         "The body is too large",
		"method_not_allowed":     "The method is not allowed here",

		"configured_by_kubernetes": "The configuration comes from Kubernetes",
		"not_found":                "No such path",
		"not_acceptable":           "No acceptable representation",
		"unavailable":              "Temporarily unavailable",
		"too_many_requests":        "Too many requests of this kind at once",
		"internal":                 "Internal error",
	}[code]
}

// internalProblem says nothing about the cause, which is in the log.
func internalProblem() *problem { return newProblem(http.StatusInternalServerError, "internal", "") }

func malformedProblem(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, "malformed_body", fmt.Sprintf(format, args...))
}

// fail answers with err. It is the only place that gives errors a status.
func (s *server) fail(c *gin.Context, err error) {
	ctx := c.Request.Context()
	p := problemOf(err)
	where := []any{"method", c.Request.Method, "path", requestPath(c), "err", err}
	switch {
	case p.Status < http.StatusInternalServerError:
	case ctx.Err() != nil:
		// The client is gone or the server stops; in the second case somebody
		// still reads this.
		p = newProblem(http.StatusServiceUnavailable, "unavailable", "the request was canceled")
		s.log.DebugContext(ctx, "request canceled", where...)
	case p.Status == http.StatusServiceUnavailable:
		s.log.WarnContext(ctx, "request not served", where...)
	default:
		s.log.ErrorContext(ctx, "request failed", where...)
	}
	s.writeProblem(c, p)
}

func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return newProblem(http.StatusServiceUnavailable, "unavailable", "the request took too long")
		}
		return internalProblem()
	}
	detail := e.Message
	if e.Hint != "" {
		detail += "; " + e.Hint
	}
	var p *problem
	switch e.Kind {
	case model.Invalid:
		p = newProblem(http.StatusBadRequest, "invalid_fields", detail)
	case model.NotFound:
		p = newProblem(http.StatusNotFound, "unknown_name", detail)
	case model.Exists:
		p = newProblem(http.StatusConflict, "already_exists", detail)
	case model.InUse:
		p = newProblem(http.StatusConflict, "in_use", detail)
	case model.Conflict:
		p = newProblem(http.StatusConflict, "conflict", detail)
	case model.Unworkable:
		p = newProblem(http.StatusUnprocessableEntity, "cannot_work", detail)
	case model.Compacted:
		p = newProblem(http.StatusGone, "compacted", detail)
	case model.Forbidden:
		p = refusal(http.StatusForbidden, "forbidden", "The role does not allow this", detail)
	case model.Unavailable:
		p = newProblem(http.StatusServiceUnavailable, "unavailable", detail)
	default:
		return internalProblem()
	}
	p.Errors, p.ReferencedBy = e.Fields, e.ReferencedBy
	return p
}

// invalidFields is nil when there are no errors.
func invalidFields(errs []model.FieldError) error {
	if len(errs) == 0 {
		return nil
	}
	n, verb := strconv.Itoa(len(errs))+" fields", "are"
	if len(errs) == 1 {
		n, verb = "1 field", "is"
	}
	return &model.Error{
		Kind: model.Invalid, Message: n + " " + verb + " missing or wrong", Hint: "see errors",
		Fields: errs,
	}
}

func (s *server) writeProblem(c *gin.Context, p *problem) {
	p.Instance = requestPath(c)
	p.Detail = shorten(p.Detail)
	shown := make([]model.FieldError, 0, min(len(p.Errors), maxFieldErrors))
	for _, e := range p.Errors[:min(len(p.Errors), maxFieldErrors)] {
		shown = append(shown, model.FieldError{Field: shorten(e.Field), Message: shorten(e.Message)})
	}
	p.Errors = shown
	if p.Status == http.StatusServiceUnavailable {
		c.Header("Retry-After", "1")
	}
	s.writeJSON(c, p.Status, "application/problem+json", p)
}

// shorten cuts text to maxMessage bytes.
func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage
	for end > 0 && s[end]&0xC0 == 0x80 { // inside a UTF-8 sequence
		end--
	}
	return s[:end] + "…"
}
