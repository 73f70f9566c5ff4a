package main

import (
	"context"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// accessLog measures the cost of forms of the access log in a hand-configured Envoy.
func (l *lab) accessLog(ctx context.Context) ([]section, error) {
	b, err := newBackend(ctx, true)
	if err != nil {
		return nil, err
	}
	defer b.close()
	route := layout.Routes(1, 1, b.port())[0]
	variants := []struct {
		what string
		byHand
	}{
		{"off", byHand{}},
		{"json to stdout", byHand{log: "json"}},
		{"the same fields as text to stdout", byHand{log: "text"}},
		{"Envoy's own text to stdout", byHand{log: "envoy"}},
		{"json to a file", byHand{log: "json", logFile: l.file("access.log")}},
		{"text to a file", byHand{log: "text", logFile: l.file("access.log")}},
		{"json to a file, flushed every second", byHand{
			log: "json", logFile: l.file("access.log"), args: []string{"--file-flush-interval-msec", "1000"},
		}},
		{"json to a file, flushed from 1 MiB on", byHand{
			log: "json", logFile: l.file("access.log"), args: []string{"--file-flush-min-size-kb", "1024"},
		}},
	}
	results := make([]loads, len(variants))
	for range max(1, l.opts.rpsStarts/2) {
		var targets []*target
		for _, v := range variants {
			v.concurrency = 1
			t, err := l.startByHand(route, v.byHand)
			if err != nil {
				return nil, err
			}
			targets = append(targets, &t.target)
		}
		if err := l.rounds(ctx, l.opts.rpsRounds, targets, results); err != nil {
			return nil, err
		}
		for _, t := range targets {
			if err := l.stop(t.envoy); err != nil {
				return nil, err
			}
		}
	}
	s := section{Title: "Access logs of an Envoy configured by hand", Of: "log on", Beside: "log off", Notes: []string{
		"Measured like the requests per second above, with half as many Envoys. Each log has the 20 fields that Gatehouse's has; stdout is /dev/null. Without other flags an Envoy writes a log when 64 kB have gathered, and every 10 seconds.",
	}}
	for i, v := range variants[1:] {
		s.Rows = append(s.Rows, besideLoads(v.what, results[i+1], results[0])...)
	}
	return []section{s}, nil
}
