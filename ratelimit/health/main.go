// Command health asks the rate-limit engine that runs beside it, with the same
// environment, whether it is healthy: it has limits, and Redis answers. It is for
// the health check of a container that holds nothing else which could ask.
//
// With --same-certificate it asks nobody: it fails if the engine's certificate was
// replaced after process 1 began, because the engine reads it only then. That is for a
// liveness probe, which starts the engine again.
//
// With --wait-for-redis it returns when Redis accepts a connection, however long that
// takes: the engine ends at once if it starts first. That is for an init container.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// limit is how long the engine has to answer.
const limit = 2 * time.Second

func main() {
	check := func() error { return ask(os.Getenv("HOST"), os.Getenv("PORT")) }
	switch strings.Join(os.Args[1:], " ") {
	case "":
	case "--same-certificate":
		check = func() error { return sameCertificate(os.Getenv("CONFIG_GRPC_XDS_CLIENT_TLS_CERT")) }
	case "--wait-for-redis":
		check = func() error { return wait(os.Getenv("REDIS_URL")) }
	default:
		check = func() error { return errors.New("usage: ratelimit-health [--same-certificate | --wait-for-redis]") }
	}
	if err := check(); err != nil {
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

// pause is how long to wait before Redis is tried again.
const pause = time.Second

// wait returns when a connection to address is accepted. It says once what it waits for.
func wait(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("REDIS_URL: %w: it must be HOST:PORT", err)
	}
	dialer := net.Dialer{Timeout: limit}
	for tried := false; ; tried = true {
		conn, err := dialer.DialContext(context.Background(), "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if !tried {
			fmt.Fprintln(os.Stderr, "ratelimit-health: waiting for Redis:", err)
		}
		time.Sleep(pause)
	}
}

// slack is how exact the times of processes are, and a bit more.
const slack = 2 * time.Second

// sameCertificate returns an error if the file was replaced after process 1 began.
func sameCertificate(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("looking at the certificate: %w", err)
	}
	began, err := beginOfFirst()
	if err != nil {
		return fmt.Errorf("finding out when process 1 began: %w", err)
	}
	if info.ModTime().After(began.Add(slack)) {
		return fmt.Errorf("the certificate %s was replaced at %s, after the engine began", path, info.ModTime().UTC().Format(time.RFC3339))
	}
	return nil
}

// beginOfFirst is when process 1 began: field 22 of its stat, in hundredths of a second
// since the start of the system, which is btime in /proc/stat (proc(5)).
func beginOfFirst() (time.Time, error) {
	system, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, err
	}
	_, text, _ := strings.Cut(string(system), "\nbtime ")
	boot, err := strconv.ParseInt(strings.SplitN(text, "\n", 2)[0], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading btime of /proc/stat: %w", err)
	}
	first, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return time.Time{}, err
	}
	// The name of the program, which is the second field, may contain anything.
	fields := strings.Fields(string(first[strings.LastIndexByte(string(first), ')')+1:]))
	const startTime = 22 - 3
	if len(fields) <= startTime {
		return time.Time{}, fmt.Errorf("/proc/1/stat has %d fields behind the name", len(fields))
	}
	ticks, err := strconv.ParseInt(fields[startTime], 10, 64)
	return time.Unix(boot, 0).Add(time.Duration(ticks) * 10 * time.Millisecond), err
}
