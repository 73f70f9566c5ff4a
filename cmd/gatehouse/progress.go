package main

import (
	"fmt"
	"io"
	"time"
)

// progress writes a line that counts the seconds, from after on, until stop is
// called; stop removes the line.
func progress(w io.Writer, what string, after time.Duration) (stop func()) {
	return progressOf(w, func() string { return what }, after)
}

// progressOf is progress of what is asked for each second.
func progressOf(w io.Writer, what func() string, after time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		timer := time.NewTimer(after)
		defer timer.Stop()
		written := false
		for {
			select {
			case <-done:
				if written {
					_, _ = fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-timer.C:
				written = true
				_, _ = fmt.Fprintf(w, "\r\x1b[K%s (%.0f s)", what(), time.Since(start).Seconds())
				timer.Reset(time.Second)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
