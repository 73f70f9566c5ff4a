package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// echoDrain is how long the backend's running answers may take at the end.
const echoDrain = time.Second

// serveEcho answers every request on l with its content, until ctx ends.
func serveEcho(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: callTime}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving the demo's backend: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), echoDrain)
	defer cancel()
	if server.Shutdown(drain) != nil {
		_ = server.Close() // requests that still wait are cut off
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stopping the demo's backend: %w", err)
	}
	return nil
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := json.MarshalIndent(struct {
		Backend string      `json:"backend"`
		Method  string      `json:"method"`
		Path    string      `json:"path"`
		Host    string      `json:"host"`
		Headers http.Header `json:"headers"`
	}{"gatehouse demo", r.Method, r.URL.RequestURI(), r.Host, r.Header}, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}
