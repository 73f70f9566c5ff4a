package rest

import (
	"context"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// warningHeader carries what a write does that its user may not want; there
	// is one for each.
	warningHeader = "Gatehouse-Warning"
	// mostWarnings and longestWarning keep a header from growing over what
	// clients take.
	mostWarnings   = 10
	longestWarning = 500
)

// setWarnings adds the warnings to the answer; the status has all.
func setWarnings(c *gin.Context, warnings []string) {
	for i, text := range warnings {
		if i == mostWarnings {
			text = fmt.Sprintf("%d more warnings are in the status", len(warnings)-i)
		}
		c.Writer.Header().Add(warningHeader, headerText(text))
		if i == mostWarnings {
			return
		}
	}
}

// headerText is text as one line of ASCII (RFC 9110 section 5.5).
func headerText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case b.Len() >= longestWarning:
			return b.String() + "..."
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		case r > 0x7f:
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// warnFailing says which of the upstreams fail that a write is about.
func (s *server) warnFailing(ctx context.Context, changed []model.Key) []string {
	if len(changed) == 0 || s.live.Upstreams == nil {
		return nil
	}
	var names []string
	err := s.read(ctx, func(r store.Reader) (err error) {
		names, err = inspect.UpstreamsOf(r, changed)
		return err
	})
	if err != nil {
		return nil // the write is done, and the status says the same
	}
	return s.live.WarnFailing(ctx, names)
}
