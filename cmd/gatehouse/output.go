package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// widest is the most characters that a cell of a table shows.
const widest = 60

// write writes value as JSON or YAML.
func (r *remote) write(value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return &runError{fmt.Errorf("writing the output: %w", err)}
	}
	out := b.Bytes()
	if r.format == formatYAML {
		var err error
		if out, err = yaml.JSONToYAML(out); err != nil {
			return &runError{fmt.Errorf("writing the output: %w", err)}
		}
	}
	p := printer{w: r.out}
	p.line("%s", bytes.TrimSuffix(out, []byte("\n")))
	return p.outputError()
}

// table writes rows below headings, without spaces at the ends of lines.
func table(w io.Writer, rows ...[]string) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	p := printer{w: t}
	for _, row := range rows {
		p.line("%s", strings.Join(row, "\t"))
	}
	if p.err == nil {
		p.err = t.Flush()
	}
	p.w = w
	for line := range strings.Lines(b.String()) {
		p.line("%s", strings.TrimRight(line, " \n"))
	}
	return p.outputError()
}

// cell shows a JSON value: text bare, a list of texts with commas.
func cell(raw json.RawMessage) string {
	var s string
	var list []string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
	case json.Unmarshal(raw, &list) == nil:
		s = strings.Join(list, ",")
	default:
		s = compact(raw)
	}
	return client.Printable(s)
}

func shortCell(raw json.RawMessage) string { return short(cell(raw)) }

// short is text as far as a cell of a table shows it.
func short(text string) string {
	s := []rune(text)
	if len(s) > widest {
		s = append(s[:widest-1], '…')
	}
	return string(s)
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// fieldsOf returns the fields of a JSON object in their order.
func fieldsOf(object json.RawMessage) ([]client.Field, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("the server answers %s in place of an object", client.Printable(compact(object)))
	}
	var list []client.Field
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("reading an object: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("reading an object: %w", err)
		}
		list = append(list, client.Field{Field: fmt.Sprint(key), After: value})
	}
	return list, nil
}

// value shows a JSON value as JSON, so that 80 and "80" differ.
func value(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "(none)"
	}
	return client.Printable(compact(raw))
}

// reportWrite reports a write that was done, in words or as data.
func (r *remote) reportWrite(a client.Answer, words string) error {
	if r.format != formatTable {
		return r.write(withRevision(a))
	}
	p := printer{w: r.out}
	if a.Revision > 0 {
		words += fmt.Sprintf(" (revision %d)", a.Revision)
	}
	p.line("%s", client.Printable(words))
	var made struct{ Key string }
	if json.Unmarshal(a.Data, &made) == nil && made.Key != "" { // only this answer has it
		p.line("%s", client.Printable(made.Key))
	}
	return p.outputError()
}

// withRevision is the data of an answer and its revision.
func withRevision(a client.Answer) map[string]any {
	all := map[string]any{}
	var data map[string]json.RawMessage
	if json.Unmarshal(a.Data, &data) == nil { // else there is none
		for k, v := range data {
			all[k] = v
		}
	}
	if a.Revision > 0 {
		all["revision"] = a.Revision
	}
	return all
}

// dryRun writes the changes of an answer to dry_run=true.
func (r *remote) dryRun(a client.Answer) error {
	if r.format != formatTable {
		return r.write(a.Data)
	}
	var data struct{ Changes []client.Change }
	if err := json.Unmarshal(a.Data, &data); err != nil {
		return &runError{fmt.Errorf("reading the answer: %w", err)}
	}
	p := printer{w: r.out}
	printChanges(&p, data.Changes)
	p.line("%s, nothing was changed", plural(len(data.Changes), "object would change", "objects would change"))
	return p.outputError()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
