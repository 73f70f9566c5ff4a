package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/anypb"
)

// Message and Pack export message and pack to the specs.
type Message = message

func Pack(m Message) (*anypb.Any, error) { return pack(m) }

// RequestFormats are the fields of a line of the access log.
var RequestFormats = requestFormats

// Negotiated returns mappers in all forms.
var Negotiated = negotiated

// PageOf returns the page of a listener.
var PageOf = pageOf

// MetricsTable is the table of the metrics of services for the documentation.
func MetricsTable() (string, error) {
	list, err := statistics()
	var b strings.Builder
	b.WriteString("| metric of Envoy | type | if | value |\n|---|---|---|---|\n")
	for _, s := range list {
		kind, option := "counter", ""
		if s.duration {
			kind = "histogram"
		}
		if s.option != "" {
			option = "`" + s.option + "`"
		}
		var labels []string
		for _, t := range s.tags {
			labels = append(labels, t.GetName())
		}
		fmt.Fprintf(&b, "| `envoy_%s_%s{%s}` | %s | %s | %s |\n", statsPrefix, s.name, strings.Join(labels, ","), kind, option, s.help)
	}
	return b.String(), err
}

// Reasons are what metrics call refusals.
func Reasons() []string {
	found := map[string]bool{"other": true}
	for _, f := range rows {
		for _, reason := range f.Refuses {
			found[reason] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
