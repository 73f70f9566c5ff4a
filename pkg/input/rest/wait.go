package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// defaultWait is longer than the bound of what an Envoy waits for.
	defaultWait = 30 * time.Second
	maxWait     = 10 * time.Minute
	// lagging is the key of what a wait was too short for.
	lagging = "lagging"
)

// Wait returns when every connected Envoy that a write reaches has it, or when
// ctx ends, with what lags by then; none means that all have it. revision is the
// one that contains the write, changed what it wrote; where that is nothing, the
// object that it was to be, without its forms.
type Wait func(ctx context.Context, revision int64, changed []model.Key) []status.Lag

// mode is how a write is made.
type mode struct {
	// dry says that nothing is to be stored.
	dry bool
	// tells says that the answer lists what the write changed.
	tells bool
	// wait is how long the answer may wait for the Envoys; 0 means not at all.
	wait time.Duration
	// about is what to wait for where the write changes nothing, as when it is
	// made again because the first wait was too short; the zero value is nothing.
	about model.Key
	// message says why, in words of the caller; empty means that nobody said so.
	message string
	// asks is called after all checks; what the write has changed is still there in a dry run.
	asks func(store.Writer) error
	// rollback says that the write puts back what was there before.
	rollback bool
}

// writeMode reads the query of a write.
func (s *server) writeMode(c *gin.Context, more ...string) (m mode, query url.Values, err error) {
	query, err = readQuery(c, append(more, "dry_run", "wait", "timeout", messageParameter))
	if err != nil {
		return mode{}, nil, err
	}
	if m.dry, err = isTrue(query, "dry_run"); err != nil {
		return mode{}, nil, err
	}
	var errs form.Errors
	m.wait = s.readWait(query, m.dry, &errs)
	m.tells = m.dry
	m.message = query.Get(messageParameter)
	if err := checkMessage(m.message); err != nil {
		errs.Add(messageParameter, "%s", err)
	}
	return m, query, invalidFields(errs.List)
}

const (
	messageParameter = "message"
	maxReason        = 500 // characters
)

// checkMessage refuses what does not fit on a line.
func checkMessage(text string) error {
	switch {
	case utf8.RuneCountInString(text) > maxReason:
		return fmt.Errorf("has more than %d characters", maxReason)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("contains a control character, such as a line break; write one line")
	}
	return form.CheckText(text)
}

func (s *server) readWait(query url.Values, dry bool, errs *form.Errors) time.Duration {
	if !query.Has("wait") {
		if query.Has("timeout") {
			errs.Add("timeout", "requires wait=applied")
		}
		return 0
	}
	switch {
	case query.Get("wait") != "applied":
		errs.Add("wait", "%q must be applied, the only value", query.Get("wait"))
	case dry:
		errs.Add("wait", "cannot be combined with dry_run, which applies nothing")
	case s.wait == nil:
		errs.Add("wait", "is not available here: this API serves no Envoys")
	}
	if !query.Has("timeout") {
		return defaultWait
	}
	d, err := time.ParseDuration(query.Get("timeout"))
	if err != nil || d <= 0 || d > maxWait {
		errs.Add("timeout", "%q is not a duration above 0 and at most 10m, such as 500ms or 5s", query.Get("timeout"))
	}
	return d
}

// waitKeys returns the keys that a wait is about.
func (m mode) waitKeys(changed []model.Key) []model.Key {
	if len(changed) == 0 && m.about != (model.Key{}) {
		return []model.Key{m.about}
	}
	return changed
}

// waitApplied returns what lags behind a write when all have it, or the time is
// over. The write is done, whatever comes of it.
func (s *server) waitApplied(c *gin.Context, m mode, done written) []status.Lag {
	ctx, cancel := s.withStop(c.Request.Context())
	defer cancel()
	ctx, end := context.WithTimeoutCause(ctx, m.wait, fmt.Errorf("not applied within %s", m.wait))
	defer end()
	return s.wait(ctx, done.revision, m.waitKeys(done.keys))
}

// statusOf returns the status of the answer to a write: 202 while something lags.
func (w written) statusOf(status int) int {
	if len(w.lagging) > 0 {
		return http.StatusAccepted
	}
	return status
}
