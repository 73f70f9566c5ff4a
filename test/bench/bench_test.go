package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

func TestBench(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "bench")
}

var _ = Describe("The yardstick", func() {
	It("measures everything, names what each result is compared with, and leaves nothing behind", func(ctx SpecContext) {
		floor, err := gexec.Build("github.com/gatehouse-gateway/gatehouse/test/bench/floor")
		Expect(err).NotTo(HaveOccurred())
		envoys, err := gexec.Build("github.com/gatehouse-gateway/gatehouse/test/bench/envoys")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(gexec.CleanupBuildArtifacts)
		tmp := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", tmp)
		file := filepath.Join(GinkgoT().TempDir(), "results.json")
		opts, err := parse([]string{
			"--gatehouse", "../../bin/gatehouse", "--envoy", "../../bin/envoy", "--console-routes", "100", "--haproxy", "../../bin/haproxy", "--node", "../../bin/console/node", "--floor", floor, "--envoys", envoys, "--json", file,
			"--sizes", "12", "--samples", "2", "--bulk", "25", "--bulk-rounds", "1", "--document", "25", "--document-rounds", "1", "--starts", "12", "--start-rounds", "1",
			"--streams", "3", "--stream-routes", "12", "--stream-changes", "1",
			"--filter-starts", "1", "--filter-rounds", "1", "--rps-starts", "1", "--rps-rounds", "1", "--rps-round", "50ms", "--idle", "100ms", "--idle-routes", "12", "--idle-changes", "2",
			"--scale", "20", "--scale-samples", "2",
			"--limit-rounds", "1", "--limit-round", "50ms", "--domains", "3", "--domain-changes", "2", "--addresses", "1000",
		})
		Expect(err).NotTo(HaveOccurred())
		var out bytes.Buffer
		Expect(run(ctx, opts, &out, GinkgoWriter)).To(Succeed())

		var r report
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(text, &r)).To(Succeed())
		var titles []string
		for _, s := range r.Sections {
			titles = append(titles, s.Title)
			Expect(out.String()).To(ContainSubstring("\n## " + s.Title + "\n"))
			for _, row := range s.Rows {
				// CPU time and memory are counted in steps that are too large here.
				if !strings.Contains(row.What, "CPU") && !strings.Contains(row.What, "memory") && row.Unit != "%" {
					Expect(row.Gatehouse).To(BeNumerically(">", 0), "%s: %s", s.Title, row.What)
				}
			}
		}
		Expect(titles).To(Equal([]string{
			"One change with 12 hosts", "Calls in a row with 12 hosts",
			"PUT /config of 25 routes", "PUT /config of 25 routes, as YAML",
			"25 routes, created one by one", "25 routes, created one by one, beside a floor that coalesces",
			"Start with 12 stored routes",
			"3 Envoys on one replica, with 12 hosts",
			"Requests per second through Envoy", "A service of mode tcp", "A service of mode tcp, beside HAProxy", "Requests over HTTP/3", "Access logs of an Envoy configured by hand", "Filters", "Filters that are switched off",
			"A rate limit",
			"Idle for 100ms with 12 routes, and one change",
			"The configuration of 20 services as one document", "One write with 20 services", "The last page of a list with 20 services",
			"3 rate-limit global configs with 20 rules each",
			"Typing into a search of the console, with 100 routes",
			"What the program takes",
		}))
		Expect(out.String()).To(MatchRegexp(`\n## Aims\n\n(met   |MISSED)  One change with 12 hosts: from the answer, p50: \d+\.\d\d x \(<= 1 x\)\n`))
		Expect(filepath.Glob(filepath.Join(tmp, "gatehouse-bench-*"))).To(BeEmpty())
	}, SpecTimeout(10*time.Minute))
})

var _ = Describe("An interrupted run", func() {
	It("reports what it has measured, and leaves nothing behind", func() {
		tmp := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", tmp)
		opts, err := parse([]string{
			"--gatehouse", "../../bin/gatehouse", "--envoy", "../../bin/envoy", "--floor", "../../bin/gatehouse", "--envoys", "../../bin/gatehouse",
			"--only", "accesslog,idle,scale", "--rps-starts", "1", "--rps-rounds", "1", "--rps-round", "50ms",
		})
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var out, progress bytes.Buffer
		err = run(ctx, opts, &out, writerFunc(func(b []byte) (int, error) {
			if string(b) == "measuring idle\n" {
				cancel()
			}
			return progress.Write(b)
		}))
		Expect(err).To(MatchError(context.Canceled))
		Expect(out.String()).To(And(ContainSubstring("\n## Access logs of an Envoy configured by hand\n"), HaveSuffix("\n0 of 0 aims met.\n")))
		Expect(progress.String()).NotTo(ContainSubstring("scale"))
		Expect(filepath.Glob(filepath.Join(tmp, "gatehouse-bench-*"))).To(BeEmpty())
	})
})

// writerFunc is a function that is a writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

var _ = Describe("parse", func() {
	DescribeTable("refuses",
		func(want string, args ...string) {
			_, err := parse(args)
			Expect(err).To(MatchError(want))
		},
		Entry("an unknown part", `--only: "speed" is none of latency, document, bulk, start, streams, rps, tcp, http3, accesslog, filters, ratelimit, idle, scale, domains, console`, "--only", "idle,speed"),
		Entry("a size of zero", `--sizes: "0" is not a number above 0`, "--sizes", "10,0"),
		Entry("an unexpected word", `"rps" is not a flag`, "rps"),
	)
})

var _ = DescribeTable("quantile",
	func(share, want float64, values ...float64) { Expect(quantile(values, share)).To(Equal(want)) },
	Entry("of nothing", 0.5, 0.0),
	Entry("of one", 0.99, 7.0, 7.0),
	Entry("the median of four is the second", 0.5, 2.0, 4.0, 1.0, 3.0, 2.0),
	Entry("the p99 of four is the last", 0.99, 4.0, 4.0, 1.0, 3.0, 2.0),
)

var _ = Describe("A row", func() {
	It("is compared with its target as it is shown, to two digits", func() {
		Expect(beside("", "ms", 1.004, 1).atMost(1).verdict()).To(Equal("met"))
		Expect(beside("", "ms", 1.006, 1).atMost(1).verdict()).To(Equal("MISSED"))
		Expect(beside("", "req/s", 0.966, 1).atLeast(0.97).verdict()).To(Equal("met"))
		Expect(beside("", "req/s", 0.964, 1).atLeast(0.97).verdict()).To(Equal("MISSED"))
		Expect(beside("", "%", 1, 5).below(1).verdict()).To(Equal("MISSED"))
		Expect(beside("", "%", 0.99, 0).below(1).verdict()).To(Equal("met"))
		Expect(beside("", "ms", 1, 2).verdict()).To(BeEmpty())
	})

	It("is written as a line of a table", func() {
		var out bytes.Buffer
		s := section{Title: "T", Beside: "floor", Notes: []string{"note"}, Rows: []row{beside("what", "ms", 3, 2).atMost(1)}}
		Expect(s.write(&out)).To(Succeed())
		Expect(out.String()).To(Equal(`
## T

|      | gatehouse |  floor | ratio | aim    |        |
|------|----------:|-------:|------:|--------|--------|
| what |    3.0 ms | 2.0 ms |  1.50 | <= 1 x | MISSED |

- note
`))
	})
})

var _ = Describe("medians", func() {
	It("are compared with the other side's in the order of the measurements", func() {
		gatehouse, other := newSeries(), newSeries()
		for _, v := range []float64{3, 1, 2} {
			gatehouse.add("served", "s", v)
			gatehouse.add("own", "MB", 10*v)
			other.add("served", "s", 2*v)
		}
		table := medians(gatehouse, other)
		table.aim("served", row.atMost, 0.5)
		table.aim("own", row.below, 20)
		Expect(table).To(Equal(rows{
			{What: "served", Unit: "s", Gatehouse: 2, Beside: new(4.0), Ratio: new(0.5), Aim: "<= 0.5 x", Met: new(true)},
			{What: "own", Unit: "MB", Gatehouse: 20, Aim: "< 20 MB", Met: new(false)},
		}))
		Expect(summarize("here: ", table, "own")).To(Equal(rows{{What: "here: own", Unit: "MB", Gatehouse: 20}}))
	})
})

var _ = Describe("The verdict", func() {
	It("has a line for every target, met or missed", func() {
		var out bytes.Buffer
		r := report{Sections: []section{
			{Title: "Start", Rows: rows{beside("served", "s", 3, 2).atMost(2), beside("CPU", "s", 3, 2)}},
			{Title: "Idle", Rows: rows{{What: "load", Unit: "%", Gatehouse: 1.5}}},
		}}
		r.Sections[1].Rows[0] = r.Sections[1].Rows[0].below(1)
		Expect(r.writeVerdict(&out)).To(Succeed())
		Expect(out.String()).To(Equal(`
## Aims

met     Start: served: 1.50 x (<= 2 x)
MISSED  Idle: load: 1.50 % (< 1 %)

1 of 2 aims met.
`))
	})
})

var _ = Describe("tenthChanged", func() {
	It("changes every tenth route and the last one, and leaves the list unchanged", func() {
		before := layout.Routes(12, layout.PerService, 9)
		after := tenthChanged(before)
		var changed []string
		for i, r := range after {
			if r.Prefix != before[i].Prefix {
				changed = append(changed, r.Prefix)
			}
		}
		Expect(changed).To(Equal([]string{"/changed/r00001", "/changed/r00011"}))
	})
})

var _ = Describe("cpuTime", func() {
	It("adds user and system time, whatever the program's name", func() {
		stat := []byte("42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 8 0 100 1000 10")
		Expect(cpuTime(stat)).To(Equal(1750 * time.Millisecond))
	})

	It("refuses anything else", func() {
		_, err := cpuTime([]byte("42 (a) S 1"))
		Expect(err).To(MatchError("too few fields"))
	})
})

var _ = Describe("wire", func() {
	DescribeTable("calls again and again, whether the connection is kept or not",
		func(ctx SpecContext, keep bool) {
			before := gleak.Goroutines()
			b, err := newBackend(ctx, keep)
			Expect(err).NotTo(HaveOccurred())
			w := wire{addr: local(b.port())}
			answers := 0
			for range 100 {
				if status, err := w.ask(ctx, get("shop.example", "/")); err == nil {
					Expect(status).To(Equal(http.StatusOK))
					answers++
				}
			}
			w.close()
			b.close()
			Expect(answers).To(Equal(map[bool]int{true: 100, false: 50}[keep]))
			Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
		},
		Entry("kept", true),
		Entry("not kept: every second call finds it closed", false),
	)

	It("stops waiting when its context ends", func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w := wire{addr: "127.0.0.1:1"}
		_, err := w.until(ctx, get("shop.example", "/"), http.StatusOK, 0)
		Expect(err).To(MatchError(context.Canceled))
	})
})
