package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	only                     []string
	gatehouse, envoy         string
	haproxy, node            string
	floor, envoys            string
	streams, streamRoutes    int
	streamChanges            int
	json                     string
	bulkRounds               int
	document, documentRounds int
	sizes, starts            []int
	samples, bulk            int
	startRounds              int
	rpsStarts, rpsRounds     int
	rpsConns                 int
	rpsRound, idle, poll     time.Duration
	limitRounds, limitConns  int
	filterStarts             int
	filterRounds             int
	filter                   string
	limitRound               time.Duration
	idleRoutes, bulkConns    int
	concurrency, idleChanges int
	scale, scaleSamples      int
	domains, domainChanges   int
	addresses                int
	consoleRoutes            int
}

// part is one thing to measure.
type part struct {
	name string
	run  func(*lab, context.Context) ([]section, error)
}

func parts() []part {
	return []part{
		{"latency", (*lab).latency},
		{"document", (*lab).whole},
		{"bulk", (*lab).bulk},
		{"start", (*lab).start},
		{"streams", (*lab).streams},
		{"rps", (*lab).rps},
		{"tcp", (*lab).tcp},
		{"http3", (*lab).http3},
		{"accesslog", (*lab).accessLog},
		{"filters", (*lab).filters},
		{"ratelimit", (*lab).ratelimit},
		{"idle", (*lab).idle},
		{"scale", (*lab).scale},
		{"domains", (*lab).domains},
		{"console", (*lab).console},
	}
}

func main() {
	opts, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	// A second signal ends this process at once, and the kernel the others.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err = run(ctx, opts, os.Stdout, os.Stderr)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench: interrupted; what it had started is ended")
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// exitInterrupted is the exit code that shells use for SIGINT.
const exitInterrupted = 128 + int(syscall.SIGINT)

// run writes the tables to out, and messages to progress. A part that fails does not
// prevent the others.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	l, err := newLab(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	r := report{Machine: l.machine}
	if err := r.writeHead(out); err != nil {
		return err
	}
	var failed error
	for _, p := range parts() {
		if !slices.Contains(opts.only, p.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(progress, "measuring %s\n", p.name)
		began := time.Now()
		sections, err := p.run(l, ctx)
		if err != nil {
			failed = errors.Join(failed, l.failed(ctx, p, err, progress))
			continue
		}
		if err := r.add(out, sections...); err != nil {
			return err
		}
		fmt.Fprintf(progress, "%s took %s\n", p.name, time.Since(began).Round(time.Second))
	}
	if len(l.summary) > 0 {
		s := section{Title: "What the program takes", Beside: "floor", Rows: l.summary, Notes: []string{"From the tables above."}}
		if err := r.add(out, s); err != nil {
			return err
		}
	}
	if err := r.writeVerdict(out); err != nil || opts.json == "" {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.writeJSON(opts.json))
}

// failed stops what the part had started.
func (l *lab) failed(ctx context.Context, p part, err error, progress io.Writer) error {
	err = fmt.Errorf("measuring %s: %w", p.name, err)
	if ctx.Err() == nil {
		fmt.Fprintln(progress, err)
		l.printLogs(progress)
	}
	return errors.Join(err, l.stop(l.runs...))
}

func parse(args []string) (options, error) {
	var o options
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := f.String("only", strings.Join(names, ","), "what to measure, separated by commas")
	f.StringVar(&o.json, "json", "", "file to write the results to, as JSON")
	f.StringVar(&o.gatehouse, "gatehouse", "bin/gatehouse", "the program")
	f.StringVar(&o.floor, "floor", "bin/bench/floor", "the floor")
	f.StringVar(&o.envoys, "envoys", "bin/bench/envoys", "the streams of many Envoys")
	f.StringVar(&o.envoy, "envoy", "bin/envoy", "the Envoy")
	f.StringVar(&o.node, "node", "bin/console/node", "the Node.js with which the console is built")
	f.StringVar(&o.haproxy, "haproxy", "bin/haproxy", "the HAProxy, for tcp")
	sizes := f.String("sizes", "10,1000,3000,10000", "latency: hosts that are there, with a route each")
	f.IntVar(&o.samples, "samples", 100, "latency: changes of each kind for each side; fewer above 2,000 hosts")
	f.DurationVar(&o.poll, "poll", 200*time.Microsecond, "latency: pause between two questions to an Envoy")
	f.IntVar(&o.document, "document", 5000, "document: routes")
	f.IntVar(&o.documentRounds, "document-rounds", 3, "document: loads of each side")
	f.IntVar(&o.bulk, "bulk", 2000, "bulk: routes; Gatehouse gets three calls for each")
	f.IntVar(&o.bulkRounds, "bulk-rounds", 3, "bulk: loads of each side")
	f.IntVar(&o.bulkConns, "bulk-connections", 4, "bulk: connections to the API")
	starts := f.String("starts", "1000,5000,50000", "start: stored routes")
	f.IntVar(&o.startRounds, "start-rounds", 5, "start: starts of each side; 3 at most from 50,000 routes on")
	f.IntVar(&o.streams, "streams", 1000, "streams: Envoys of each side")
	f.IntVar(&o.streamRoutes, "stream-routes", 3000, "streams: hosts that are there, with a route each")
	f.IntVar(&o.streamChanges, "stream-changes", 5, "streams: changes of each side")
	f.IntVar(&o.rpsStarts, "rps-starts", 8, "rps: Envoys of each side and setting, one after the other")
	f.IntVar(&o.rpsRounds, "rps-rounds", 50, "rps: rounds with each Envoy")
	f.DurationVar(&o.rpsRound, "rps-round", 50*time.Millisecond, "rps: length of a round")
	f.IntVar(&o.rpsConns, "rps-connections", 16, "rps: client connections")
	f.IntVar(&o.filterStarts, "filter-starts", 2, "filters: Envoys, one after the other")
	f.IntVar(&o.filterRounds, "filter-rounds", 40, "filters: rounds of each row with each Envoy, as long as those of rps")
	f.StringVar(&o.filter, "filter", "", "filters: only rows whose name contains this")
	f.IntVar(&o.limitRounds, "limit-rounds", 40, "ratelimit: rounds of each")
	f.IntVar(&o.limitConns, "limit-connections", 32, "ratelimit: client connections")
	f.DurationVar(&o.limitRound, "limit-round", 250*time.Millisecond, "ratelimit: length of a round")
	f.DurationVar(&o.idle, "idle", 30*time.Second, "idle: for how long")
	f.IntVar(&o.idleRoutes, "idle-routes", 3000, "idle: routes that are there")
	f.IntVar(&o.idleChanges, "idle-changes", 20, "idle: changes afterwards")
	f.IntVar(&o.scale, "scale", 10000, "scale: services, each with 5 routes")
	f.IntVar(&o.scaleSamples, "scale-samples", 60, "scale: samples of each call")
	f.IntVar(&o.domains, "domains", 1000, "domains: rate-limit global configs")
	f.IntVar(&o.domainChanges, "domain-changes", 30, "domains: changes of a rate")
	f.IntVar(&o.addresses, "addresses", 1_000_000, "domains: addresses that the engine of standalone counts")
	f.IntVar(&o.consoleRoutes, "console-routes", 5000, "console: routes")
	f.IntVar(&o.concurrency, "concurrency", 2, "worker threads of an Envoy; rps uses 1, so that connections spread alike")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	for _, name := range strings.Split(*only, ",") {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("--only: %q is none of %s", name, strings.Join(names, ", "))
		}
		o.only = append(o.only, name)
	}
	var err error
	if o.sizes, err = numbers("sizes", *sizes); err != nil {
		return o, err
	}
	o.starts, err = numbers("starts", *starts)
	return o, err
}

func numbers(name, text string) ([]int, error) {
	var list []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--%s: %q is not a number above 0", name, word)
		}
		list = append(list, n)
	}
	return list, nil
}
