package cost_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var update = flag.Bool("update", false, "write the table of docs/performance.md again")

const (
	page = "../../docs/performance.md"
	// begin ends in the processor that the table was counted on.
	begin = "<!-- What follows is counted by make cost on "
	end   = "<!-- /make cost -->\n"
	// tolerance is what a part may cost more than the committed figure. Another processor has other variants of what
	// copies and encrypts.
	tolerance, otherProcessor = 1.005, 1.03
)

var _ = Describe("A request costs no more than docs/performance.md says:", Ordered, ContinueOnFailure, func() {
	rows := parts()
	var envoys map[string]*gateway
	counted := map[string]float64{}
	// costs counts a part once, whichever spec needs it first.
	costs := func(ctx SpecContext, name string) float64 {
		if counted[name] == 0 {
			p := rows[slices.IndexFunc(rows, func(p part) bool { return p.name == name })]
			counted[name] = envoys[p.envoy].cost(ctx, p)
		}
		return counted[name]
	}
	ratio := func(ctx SpecContext, p part) float64 {
		return costs(ctx, p.name) / costs(ctx, p.besides())
	}

	BeforeAll(func(ctx SpecContext) {
		w, plain := newWorld(), []part{{host: "plain"}}
		lean := w.with(model.GlobalConfigGlobals, object{"lean": true})
		traced := func(share float64, tries bool) world {
			return w.with(model.GlobalConfigTracing, object{"upstream": "collector", "sampling": share, "upstream_spans": tries})
		}
		envoys = map[string]*gateway{
			byHand:     w.startByHand(ctx),
			silent:     w.start(ctx, services(rows, silent), "--access-log", "off"),
			logged:     w.start(ctx, plain),
			leanSilent: lean.start(ctx, plain, "--access-log", "off"),
			leanLogged: lean.start(ctx, plain),
			bounded: w.with(model.GlobalConfigConnections, object{
				"max_connections": 1000, "max_requests": 100000, "max_age": "1h", "idle_timeout": "5m", "keepalive": "30s",
				"headers_timeout": "5s", "slow_reader_timeout": "1m", "headers_kib": 32, "headers": 50,
			}).start(ctx, plain, "--access-log", "off"),
			located:   w.withCountries().start(ctx, services(rows, located), "--access-log", "off"),
			balanced:  w.with(model.GlobalConfigProxyProtocol, object{"from": list{"127.0.0.0/8"}}).start(ctx, plain, "--access-log", "off"),
			told:      w.withHTTP3().start(ctx, plain, "--access-log", "off"),
			collected: w.with(model.GlobalConfigAccessLog, object{"upstream": "collector"}).start(ctx, plain),
			sentALS: w.with(model.GlobalConfigAccessLog, object{
				"upstream": "collector", "protocol": "als", "discloses": list{"query", "referer", "metadata"},
			}).start(ctx, plain),
			chosen:     w.with(model.GlobalConfigAccessLog, object{}).start(ctx, plain),
			textual:    w.with(model.GlobalConfigAccessLog, object{"always": true, "text": textLine}).start(ctx, plain),
			ofOthers:   w.with(model.GlobalConfigAccessLog, object{"attached_only": true}).start(ctx, plain),
			tracedNone: traced(0, false).start(ctx, plain, "--access-log", "off"),
			tracedB3: w.with(model.GlobalConfigTracing, object{"upstream": "collector", "sampling": 0, "b3": true}).
				start(ctx, plain, "--access-log", "off"),
			tracedSome: traced(1, false).start(ctx, plain, "--access-log", "off"),
			tracedAll:  traced(100, false).start(ctx, plain, "--access-log", "off"),
			passing: w.start(ctx, append(slices.Clone(plain), part{host: "passed", mode: model.ModeTLS, fqdn: "*.test"}),
				"--access-log", "off"),
			triesNone: traced(0, true).start(ctx, plain, "--access-log", "off"),
			serviced:  w.with(model.GlobalConfigMetrics, object{}).start(ctx, plain, "--access-log", "off"),
			measured: w.with(model.GlobalConfigMetrics, object{"routes": true, "bytes": true, "retries": true}).
				start(ctx, plain, "--access-log", "off"),
			leanCounts: lean.and(model.GlobalConfigMetrics, object{}).start(ctx, plain, "--access-log", "off"),
		}
	}, NodeTimeout(10*time.Minute))

	for _, p := range rows {
		It(p.name, func(ctx SpecContext) {
			if p.host == manyHosts()[500].host {
				costs(ctx, logged) // before there are more hosts
				envoys[p.envoy].apply(ctx, manyHosts())
			}
			now := ratio(ctx, p)
			AddReportEntry(p.name, fmt.Sprintf("%.0f instructions, %.4f", counted[p.name], now))
			if *update || runtime.GOARCH != "amd64" { // the figures are those of x86-64
				return
			}
			figures, most := committed()
			want, found := figures[p.name]
			Expect(found).To(BeTrue(), "docs/performance.md does not have it: run make cost")
			most = max(most, 1+p.noise)
			if now > want*most { // what disturbs a count only adds to it
				counted[p.name] = min(counted[p.name], envoys[p.envoy].cost(ctx, p))
				now = ratio(ctx, p)
			}
			Expect(now).To(BeNumerically("<=", want*most),
				"%s: %.0f instructions are %.3f of %s, and %.3f is committed (%+.1f%%). If it must cost that, run make cost",
				p.name, counted[p.name], now, p.besides(), want, 100*(now/want-1))
		}, NodeTimeout(10*time.Minute))
	}

	AfterAll(func() {
		if *update {
			write(rows, counted)
		}
	})
})

var _ = It("Each type of filter is counted, or docs/performance.md has the reason", func() {
	types := slices.Collect(maps.Keys(notCounted))
	for _, p := range filters() {
		types = append(types, p.kind)
	}
	Expect(types).To(ConsistOf(model.ConfigTypes(model.KindFilter)))
})

// besides returns the part to compare with.
func (p part) besides() string {
	switch {
	case p.envoy == byHand:
		return p.name
	case p.beside == "":
		return byHand
	}
	return p.beside
}

// committed reads the ratios of the table, and how much more a part may cost here.
func committed() (ratios map[string]float64, most float64) {
	GinkgoHelper()
	_, table, _ := split()
	most = otherProcessor
	if strings.HasPrefix(table, processor()+". -->\n") {
		most = tolerance
	}
	ratios = map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^\| (.+?) \| [\d,]+ \| ([\d.]+) \|$`).FindAllStringSubmatch(table, -1) {
		var err error
		ratios[m[1]], err = strconv.ParseFloat(m[2], 64)
		Expect(err).NotTo(HaveOccurred())
	}
	return ratios, most
}

// processor returns the vendor and the family of this machine's processor.
func processor() string {
	GinkgoHelper()
	text, err := os.ReadFile("/proc/cpuinfo")
	Expect(err).NotTo(HaveOccurred())
	var words []string
	for _, field := range []string{"vendor_id", "cpu family"} {
		if m := regexp.MustCompile(`(?m)^` + field + `\s*: (.+)$`).FindSubmatch(text); m != nil {
			words = append(words, string(m[1]))
		}
	}
	return strings.Join(words, " ")
}

// split returns the document before, in and after the table, which begins with the processor.
func split() (before, table, after string) {
	GinkgoHelper()
	text, err := os.ReadFile(page)
	Expect(err).NotTo(HaveOccurred())
	before, rest, found := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	Expect(found && closed).To(BeTrue(), "docs/performance.md has lost the comments around its table")
	return before, table, after
}

// write replaces the table.
func write(rows []part, counted map[string]float64) {
	GinkgoHelper()
	before, _, after := split()
	var b strings.Builder
	b.WriteString(before + begin + processor() + ". -->\n| part | instructions | beside by hand |\n|---|---:|---:|\n")
	for _, p := range rows {
		Expect(counted).To(HaveKey(p.name), "without it the table is not written")
		hundreds := int(math.Round(counted[p.name] / 100))
		fmt.Fprintf(&b, "| %s | %d,%d00 | %.3f |\n", p.name, hundreds/10, hundreds%10, counted[p.name]/counted[p.besides()])
	}
	for _, kind := range slices.Sorted(maps.Keys(notCounted)) {
		fmt.Fprintf(&b, "| `%s` | | it %s |\n", kind, notCounted[kind])
	}
	Expect(os.WriteFile(page, []byte(b.String()+end+after), 0o600)).To(Succeed())
}
