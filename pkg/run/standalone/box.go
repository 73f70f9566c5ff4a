package standalone

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// printSummary prints addresses, files and next steps.
func (d Demo) printSummary() {
	lines := []string{
		"Gateway  " + d.Gateway + "/",
		"API      " + d.API + "/",
		"Docs     " + d.API + "/docs",
	}
	if d.HTTPS != "" {
		lines = slices.Insert(lines, 1, "HTTPS    "+d.HTTPS+"/ for services with a certificate")
	}
	if d.LogFile != "" {
		lines = append(lines, "Log      "+d.LogFile)
	}
	if d.Program != "" && d.Token == "" {
		lines = append(lines, "",
			"Next     "+d.Program+" status --server "+d.API,
			"         "+d.Program+" explain "+d.Proxy+" "+d.Gateway+"/ --server "+d.API)
	}
	d.print("\n%s", frame(append(lines, "", "Ctrl-C ends the gateway; the configuration stays.")))
}

// frame draws a frame around lines.
func frame(lines []string) string {
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line))
	}
	border := "+" + strings.Repeat("-", width+2) + "+"
	text := []string{border}
	for _, line := range lines {
		text = append(text, "| "+line+strings.Repeat(" ", width-utf8.RuneCountInString(line))+" |")
	}
	return strings.Join(append(text, border), "\n")
}
