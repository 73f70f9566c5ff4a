package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// report is the complete result.
type report struct {
	Machine  machine   `json:"machine"`
	Sections []section `json:"sections"`
}

// section is one table: Gatehouse compared with something else.
type section struct {
	Title string `json:"title"`
	// Of says whose number is first; empty means Gatehouse's.
	Of     string `json:"of,omitempty"`
	Beside string `json:"beside"`
	Rows   []row  `json:"rows"`
	// Notes say how it was measured.
	Notes []string `json:"notes,omitempty"`
}

// row is one number for each side.
type row struct {
	What      string  `json:"what"`
	Unit      string  `json:"unit"`
	Gatehouse float64 `json:"gatehouse"`
	// Beside is the other side's number; nil if there is none.
	Beside *float64 `json:"beside,omitempty"`
	// Ratio is Gatehouse / Beside, to two digits.
	Ratio *float64 `json:"ratio,omitempty"`
	// Aim is the aim for the number or the ratio; empty means that it is only shown.
	Aim string `json:"aim,omitempty"`
	Met *bool  `json:"met,omitempty"`
}

// beside makes a row with two numbers.
func beside(what, unit string, gatehouse, other float64) row {
	r := row{What: what, Unit: unit, Gatehouse: gatehouse, Beside: &other}
	if other != 0 {
		r.Ratio = new(round(gatehouse / other))
	}
	return r
}

// atMost sets the aim of the ratio.
func (r row) atMost(limit float64) row {
	return r.aim(fmt.Sprintf("<= %g x", limit), r.Ratio != nil && *r.Ratio <= limit)
}

// atLeast sets the aim of the ratio.
func (r row) atLeast(limit float64) row {
	return r.aim(fmt.Sprintf(">= %g x", limit), r.Ratio != nil && *r.Ratio >= limit)
}

// below sets the aim of the number itself.
func (r row) below(limit float64) row {
	return r.aim(fmt.Sprintf("< %g %s", limit, r.Unit), r.Gatehouse < limit)
}

func (r row) aim(text string, met bool) row {
	r.Aim, r.Met = text, &met
	return r
}

func (r row) verdict() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return "met"
	}
	return "MISSED"
}

func (r *report) writeHead(to io.Writer) error {
	_, err := fmt.Fprintf(to, "# Gatehouse, measured\n\n%d CPUs, Envoy %s, %s, fsync %.2f ms. Ratios count; times are those of this machine, now.\n",
		r.Machine.CPUs, r.Machine.Envoy, r.Machine.Go, r.Machine.FsyncMS)
	return err
}

// add prints sections and keeps them.
func (r *report) add(to io.Writer, sections ...section) error {
	r.Sections = append(r.Sections, sections...)
	for _, s := range sections {
		if err := s.write(to); err != nil {
			return err
		}
	}
	return nil
}

// write prints the section in Markdown that reads well in a terminal.
func (s section) write(to io.Writer) error {
	table := [][]string{{"", cmp.Or(s.Of, "gatehouse"), s.Beside, "ratio", "aim", ""}}
	for _, r := range s.Rows {
		line := []string{r.What, number(r.Gatehouse, r.Unit), "", "", r.Aim, r.verdict()}
		if r.Beside != nil {
			line[2] = number(*r.Beside, r.Unit)
		}
		if r.Ratio != nil {
			line[3] = fmt.Sprintf("%.2f", *r.Ratio)
		}
		table = append(table, line)
	}
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", s.Title)
	for n, line := range table {
		for i, cell := range line {
			format := "| %*s "
			if i == 0 || i > 3 {
				format = "| %-*s "
			}
			fmt.Fprintf(&b, format, widths[i], cell)
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, w := range widths {
			rule := strings.Repeat("-", w+2)
			if i > 0 && i <= 3 {
				rule = rule[1:] + ":"
			}
			b.WriteString("|" + rule)
		}
		b.WriteString("|\n")
	}
	for i, note := range s.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", note)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func number(v float64, unit string) string {
	digits := map[string]int{"ms": 1, "s": 2, "%": 2, "MB": 0, "req/s": 0, "us": 1}[unit]
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}

// writeVerdict writes a line for every aim.
func (r *report) writeVerdict(to io.Writer) error {
	var lines strings.Builder
	met, aims := 0, 0
	for _, s := range r.Sections {
		for _, row := range s.Rows {
			if row.Met == nil {
				continue
			}
			aims++
			if *row.Met {
				met++
			}
			fmt.Fprintf(&lines, "%-6s  %s: %s: %s (%s)\n", row.verdict(), s.Title, row.What, row.held(), row.Aim)
		}
	}
	_, err := fmt.Fprintf(to, "\n## Aims\n\n%s\n%d of %d aims met.\n", lines.String(), met, aims)
	return err
}

// held returns what is compared with the aim: the ratio, or the number itself.
func (r row) held() string {
	if strings.HasSuffix(r.Aim, " x") && r.Ratio != nil {
		return fmt.Sprintf("%.2f x", *r.Ratio)
	}
	return number(r.Gatehouse, r.Unit)
}

func (r *report) writeJSON(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// quantile returns the smallest value that at least that share of all values does not
// exceed (nearest rank); 0 without values.
func quantile[T cmp.Ordered](values []T, share float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const mb = 1e6

// round rounds to two digits, as ratios are shown and judged.
func round(v float64) float64 { return math.Round(v*100) / 100 }
