// Slowest prints which packages and which specs took longest, and once more which specs
// failed, from the reports that Ginkgo has left in a directory.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

// timed is a package or a spec, and how long it ran.
type timed struct {
	name string
	took time.Duration
}

func run(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	var suites, specs []timed
	var failed []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var reports []types.Report
		if err := json.Unmarshal(text, &reports); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".json"), "_", "/")
		cpu, _ := os.ReadFile(strings.TrimSuffix(file, ".json") + ".cpu") // the processes of test/e2e have none
		for _, r := range reports {
			suites = append(suites, timed{strings.TrimSpace(name + " " + processorTime(string(cpu))), r.RunTime})
			for _, s := range r.SpecReports {
				specs = append(specs, timed{name + ": " + s.FullText(), s.RunTime})
				if s.Failed() {
					failed = append(failed, fmt.Sprintf("%s: %s\n%s\n%s", name, s.FullText(), s.FailureLocation(), shorten(s.FailureMessage())))
				}
			}
		}
	}
	table("packages", suites)
	table("specs", specs)
	for _, text := range failed {
		fmt.Printf("\nFailed: %s\n", text)
	}
	return nil
}

// processorTime returns what the shell's times printed, such as "1m2.5s 0m7.1s", as a sum.
func processorTime(times string) string {
	var all time.Duration
	for _, field := range strings.Fields(times) {
		one, err := time.ParseDuration(field)
		if err != nil {
			return ""
		}
		all += one
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("(%.0f s of a processor)", all.Seconds())
}

// shorten cuts what a spec that failed compared.
func shorten(s string) string {
	const end = 1000
	if len(s) <= end {
		return s
	}
	return strings.ToValidUTF8(s[:end], "") + "…"
}

// table prints the ten that took longest.
func table(title string, list []timed) {
	slices.SortFunc(list, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, t := range list[:min(10, len(list))] {
		_, _ = fmt.Fprintf(w, "%.1f s\t %s\n", t.took.Seconds(), t.name)
	}
	fmt.Printf("\nThe slowest of %d %s:\n", len(list), title)
	_ = w.Flush()
}
