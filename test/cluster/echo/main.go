// Command echo is the backend of the specs of test/cluster: it answers every request
// with 200, the name of its Pod in the header X-Backend, and the path in the body. GET /wait?for=1s
// answers later. It exits after running requests.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := serve(":8000", os.Getenv("HOSTNAME")); err != nil {
		log.Fatal(err)
	}
}

// serve answers until it is told to stop.
func serve(addr, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &http.Server{Addr: addr, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait, err := time.ParseDuration(r.URL.Query().Get("for")); err == nil && r.URL.Path == "/wait" {
			time.Sleep(wait)
		}
		w.Header().Set("X-Backend", name)
		_, _ = fmt.Fprintln(w, r.URL.Path) // the client may have gone
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return server.Shutdown(limit)
}
