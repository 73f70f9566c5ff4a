package observe_test

import (
	"cmp"
	"flag"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var pictures = flag.Bool("pictures", false, "draw docs/dashboards again, from a minute of traffic")

// Sizes in pixels. A dashboard has 24 columns.
const (
	column, rowHeight = 50, 30
	gap               = 8
	left, right       = 66, 16 // of the chart in its panel
	top, bottom       = 36, 52
)

// drawn are the variables of what is drawn. A rate has several load reports of Envoys.
var drawn = strings.NewReplacer("$__rate_interval", "15s", "$cluster", ".*")

// colors are those of the lines, in their order.
var colors = []string{"#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#96d98d"}

var _ = Describe("Pictures of the dashboards", func() {
	if !*pictures {
		return
	}
	It("are drawn", func() {
		const seconds, perSecond = 60, 4 // shown, and how often Prometheus reads
		const before = 15
		samples := func() map[string]string {
			// The control plane has something to do, too.
			_, err := api.Post(limit(), "/service", "Service_name=extra", "Fqdn=extra.test")
			Expect(err).NotTo(HaveOccurred())
			_, err = api.Delete(limit(), "/service/extra")
			Expect(err).NotTo(HaveOccurred())
			found, err := prometheus.Query(limit(), fmt.Sprintf("count_over_time(envoy_server_uptime[10m]) > %d", (before+seconds)*perSecond))
			Expect(err).NotTo(HaveOccurred())
			return found
		}
		Eventually(samples).WithTimeout(3 * time.Minute).WithPolling(500 * time.Millisecond).ShouldNot(BeEmpty())
		end := time.Now()
		for name, d := range dashboards() {
			picture := draw(d, func(expression string) []testkit.Series {
				list, err := prometheus.QueryRange(limit(), expression, end.Add(-seconds*time.Second), end, time.Second)
				Expect(err).NotTo(HaveOccurred())
				return list
			})
			Expect(os.WriteFile("../../docs/dashboards/"+strings.TrimSuffix(name, ".json")+".svg", []byte(picture), 0o600)).To(Succeed())
		}
	})
})

// draw returns a dashboard as SVG, as Grafana would show it.
func draw(d dashboard, query func(expression string) []testkit.Series) string {
	var b strings.Builder
	height := 0
	for _, p := range d.Panels {
		height = max(height, (p.GridPos.Y+p.GridPos.H)*rowHeight)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Inter,Helvetica,Arial,sans-serif" font-size="12" fill="#ccccdc">
<rect width="100%%" height="100%%" fill="#111217"/>
`, 24*column, height+40)
	label(&b, gap+4, 26, `font-size="18" fill="#ffffff"`, d.Title)
	for _, p := range d.Panels {
		x, y := p.GridPos.X*column, p.GridPos.Y*rowHeight+40
		w, h := p.GridPos.W*column-gap, p.GridPos.H*rowHeight-gap
		if p.Type == "row" {
			label(&b, x+gap+4, y+21, `font-size="16" fill="#ffffff"`, p.Title)
			continue
		}
		fmt.Fprintf(&b, `<g transform="translate(%d %d)"><rect width="%d" height="%d" rx="3" fill="#181b1f" stroke="#2c3235"/>`+"\n", x+gap/2, y, w, h)
		label(&b, 10, 21, `font-size="14" fill="#ffffff"`, p.Title)
		var lines []testkit.Series
		for _, t := range p.Targets {
			for _, s := range query(drawn.Replace(t.Expr)) {
				s.Name = regexp.MustCompile(`\{\{(\w+)\}\}`).ReplaceAllStringFunc(t.LegendFormat, func(l string) string { return s.Labels[strings.Trim(l, "{}")] })
				lines = append(lines, s)
			}
		}
		slices.SortStableFunc(lines, func(a, c testkit.Series) int { return cmp.Compare(a.Name, c.Name) })
		if unit := p.FieldConfig.Defaults.Unit; p.Type == "stat" {
			drawStat(&b, w, h, unit, lines)
		} else {
			drawLines(&b, w, h, unit, lines)
		}
		b.WriteString("</g>\n")
	}
	return b.String() + "</svg>\n"
}

// drawStat writes the last value of each line.
func drawStat(b *strings.Builder, w, h int, unit string, lines []testkit.Series) {
	for i, l := range lines {
		at := (h*(2*i+1))/(2*len(lines)) + 20
		label(b, w/2, at, `font-size="44" text-anchor="middle" fill="#73bf69"`, format(l.Values[slices.Max(slices.Collect(maps.Keys(l.Values)))], unit))
		label(b, w/2, at+24, `text-anchor="middle"`, l.Name)
	}
}

// drawLines draws a chart.
func drawLines(b *strings.Builder, w, h int, unit string, lines []testkit.Series) {
	most, from, to := 0.0, int64(math.MaxInt64), int64(0)
	for _, l := range lines {
		for at, v := range l.Values {
			most, from, to = max(most, v), min(from, at), max(to, at)
		}
	}
	step := nice(most / 4)
	most = step * max(1, math.Ceil(most/step))
	x := func(at int64) float64 {
		return left + float64(at-from)/float64(max(1, to-from))*float64(w-left-right)
	}
	y := func(v float64) float64 { return top + (1-v/most)*float64(h-top-bottom) }
	for v := 0.0; v <= most*1.001; v += step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#2c3235"/>`, left, y(v), w-right)
		label(b, left-8, int(y(v))+4, `text-anchor="end" fill="#9a9ba3"`, format(v, unit))
	}
	for at := from; at <= to; at += 15 {
		label(b, int(x(at)), h-bottom+18, `text-anchor="middle" fill="#9a9ba3"`, fmt.Sprintf("%d s", at-from))
	}
	b.WriteString("\n")
	next := left
	for i, l := range lines {
		color := colors[i%len(colors)]
		fmt.Fprintf(b, `<path fill="none" stroke-width="1.5" stroke="%s" d="`, color)
		for j, at := range slices.Sorted(maps.Keys(l.Values)) {
			fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(j, 1)], x(at), y(l.Values[at]))
		}
		b.WriteString("\"/>\n")
		if next < w-120 {
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="14" height="3" fill="%s"/>`, next, h-16, color)
			label(b, next+19, h-11, "", l.Name)
			next += 34 + 7*len(l.Name)
		}
	}
}

func label(b *strings.Builder, x, y int, attributes, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" %s>%s</text>`, x, y, attributes, html.EscapeString(text))
}

// nice returns the next of 1, 2 and 5 times a power of ten.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// format writes a value in the unit of Grafana.
func format(v float64, unit string) string {
	number := func(v float64) string { return fmt.Sprintf("%.3g", v) }
	switch unit {
	case "percentunit":
		return number(v*100) + "%"
	case "bytes":
		return number(v/(1<<20)) + " MiB"
	case "reqps":
		return number(v) + " req/s"
	case "cps", "ops":
		return number(v) + "/s"
	case "d":
		return number(v) + " days"
	case "ms":
		return number(v) + " ms"
	case "s":
		if v != 0 && v < 1 {
			return number(v*1000) + " ms"
		}
		return number(v) + " s"
	}
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return number(v)
}
