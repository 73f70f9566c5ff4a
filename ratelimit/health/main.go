// Command health asks the rate-limit engine that runs beside it, with the same
// environment, whether it is healthy: it has limits, and Redis answers. It is for
// the health check of a container that holds nothing else which could ask.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// limit is how long the engine has to answer.
const limit = 2 * time.Second

func main() {
	if err := ask(os.Getenv("HOST"), os.Getenv("PORT")); err != nil {
		fmt.Fprintln(os.Stderr, "ratelimit-health:", err)
		os.Exit(1)
	}
}

// ask returns an error unless the engine's health check answers 200. Empty values
// mean the engine's own defaults.
func ask(host, port string) error {
	if host == "" || host == "0.0.0.0" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "8080"
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/healthcheck"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking the engine: %w", err)
	}
	if err := answer.Body.Close(); err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: the engine has no limits yet, or no Redis", url, answer.Status)
	}
	return nil
}
