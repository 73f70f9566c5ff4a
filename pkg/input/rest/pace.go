package rest

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// paceBytes are written at once. A client has Options.Pace to take them.
	paceBytes = 64 << 10
	// largeAnswer is what an answer may have without being counted.
	largeAnswer = 1 << 20 // bytes
	// maxLarge is how many large answers one caller may be reading at once: each
	// holds memory or a file for as long as the caller takes.
	maxLarge = 8
)

// limitIdle bounds how long a client that reads nothing can hold a request. A
// slow one gets all, however long that takes.
func (s *server) limitIdle(c *gin.Context) {
	rc := http.NewResponseController(c.Writer)
	w := &pacedWriter{ResponseWriter: c.Writer, rc: rc, pace: s.pace}
	// The request before on this connection left its last deadline.
	if err := w.deadline(time.Time{}); err != nil {
		_ = c.Error(err)
		c.Abort()
		return
	}
	c.Writer = w
	c.Next()
	_ = w.deadline(time.Now().Add(s.pace)) // for what net/http has yet to send
}

type pacedWriter struct {
	gin.ResponseWriter
	rc   *http.ResponseController
	pace time.Duration
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *pacedWriter) Write(b []byte) (n int, err error) {
	for {
		piece := b[:min(len(b), paceBytes)]
		if err := w.deadline(time.Now().Add(w.pace)); err != nil {
			return n, err
		}
		written, err := w.ResponseWriter.Write(piece)
		n += written
		if err != nil {
			return n, err
		}
		if b = b[len(piece):]; len(b) == 0 {
			// On HTTP/2 the deadline would end the stream also while nothing is
			// written.
			return n, w.deadline(time.Time{})
		}
	}
}

// FlushError is Flush for http.ResponseController.
func (w *pacedWriter) FlushError() error {
	if err := w.deadline(time.Now().Add(w.pace)); err != nil {
		return err
	}
	if err := w.rc.Flush(); err != nil {
		return err
	}
	return w.deadline(time.Time{})
}

// Flush implements http.Flusher.
func (w *pacedWriter) Flush() { _ = w.FlushError() }

// WriteString implements io.StringWriter.
func (w *pacedWriter) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

func (w *pacedWriter) deadline(at time.Time) error {
	if err := w.rc.SetWriteDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	return nil
}

// readers counts who is reading large answers.
type readers struct {
	mu sync.Mutex
	by map[string]int
}

// acquire counts one more answer for the caller until leave is called. Too many are
// refused.
func (r *readers) acquire(c *gin.Context) (leave func(), err error) {
	who := actorOf(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[who] == maxLarge {
		c.Header("Retry-After", retryAfter)
		return nil, newProblem(http.StatusTooManyRequests, "too_many_requests",
			fmt.Sprintf("%q is reading %d large answers already; read them to their end, then try again", who, maxLarge))
	}
	r.by[who]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.by[who]--; r.by[who] == 0 {
			delete(r.by, who)
		}
	}, nil
}
