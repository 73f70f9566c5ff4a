package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// ConfigQuery chooses what GET /config shows.
type ConfigQuery struct {
	// Secrets is references, sealed, or empty for the server's default.
	Secrets string
	// Tag leaves out what does not carry it; empty means everything.
	Tag string
	// JSON asks for JSON in place of YAML.
	JSON bool
	// NoRevision leaves out the revision of the document.
	NoRevision bool
}

// ReadConfig reads the configuration document as it arrives. The caller closes
// it.
func (c *Client) ReadConfig(ctx context.Context, q ConfigQuery) (io.ReadCloser, error) {
	r := Request{Method: http.MethodGet, Path: "/config", Query: url.Values{}, Accept: "application/yaml"}
	if q.JSON {
		r.Accept = "application/json"
	}
	if q.Secrets != "" {
		r.Query.Set("secrets", q.Secrets)
	}
	if q.Tag != "" {
		r.Query.Set("tag", q.Tag)
	}
	if q.NoRevision {
		r.Query.Set("revision", "false")
	}
	return c.Stream(ctx, r)
}

// Apply says how a document is applied.
type Apply struct {
	// DryRun changes nothing and says what would change.
	DryRun bool
	// Force overwrites what was changed after the revision of the document.
	Force bool
	// Prune deletes what the document does not name.
	Prune bool
	// Delete deletes what the document names instead.
	Delete bool
	// Tag limits the work to objects that carry it; empty means all.
	Tag string
	// Wait is how long to wait for the Envoys; 0 means not at all.
	Wait time.Duration
}

// Field is one field of a Change. A value that is not there is nil.
type Field struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Default means that a field of a new or deleted object has the value that it gets when none is given.
	Default bool `json:"default,omitempty"`
}

// Change is what happens to one object.
type Change struct {
	// Action is create, update or delete.
	Action string  `json:"action"`
	Path   string  `json:"path"`
	Kind   string  `json:"kind"`
	Fields []Field `json:"fields"`
}

// Applied is what a document did, or would do.
type Applied struct {
	Created   int      `json:"created"`
	Updated   int      `json:"updated"`
	Deleted   int      `json:"deleted"`
	Unchanged int      `json:"unchanged"`
	Changes   []Change `json:"changes"`
	Warnings  []string `json:"warnings"`
}

// ApplyConfig sends a document. Line numbers in an error refer to the
// files that the document was made from.
func (c *Client) ApplyConfig(ctx context.Context, d Document, o Apply) (Applied, Answer, error) {
	r := Request{
		Method: http.MethodPut, Path: "/config", Query: url.Values{}, ContentType: "application/yaml", Body: d.Data,
	}
	if json.Valid(d.Data) {
		r.ContentType = "application/json"
	}
	if o.DryRun {
		r.Query.Set("dry_run", "true")
	}
	if o.Force {
		r.Query.Set("force", "true")
	}
	if o.Prune {
		r.Query.Set("prune", "true")
	}
	if o.Delete {
		r.Query.Set("delete", "true")
	}
	if o.Tag != "" {
		r.Query.Set("tag", o.Tag)
	}
	if o.Wait > 0 {
		Wait(r.Query, o.Wait)
	}
	a, err := c.Do(ctx, r)
	if err != nil {
		return Applied{}, Answer{}, d.locate(err)
	}
	var applied Applied
	if err := json.Unmarshal(a.Data, &applied); err != nil {
		return Applied{}, Answer{}, fmt.Errorf("reading the answer to PUT /config: %w", err)
	}
	return applied, a, nil
}

// locate replaces "line N" of the merged document by "FILE line M".
func (d Document) locate(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // Do returns it as it is
	if !ok || d.origins == nil && d.values == nil {
		return err
	}
	e.Detail = d.InFiles(e.Detail)
	for i, f := range e.Fields {
		e.Fields[i] = FieldError{d.InFiles(f.Field), d.InFiles(f.Message)}
	}
	return e
}

// InFiles replaces "line N" of a merged document by "FILE line M" in a text, and values that were put into it by what
// stands for them.
func (d Document) InFiles(text string) string {
	text = hide(d.values, text)
	return regexp.MustCompile(`\bline (\d+)\b`).ReplaceAllStringFunc(text, func(match string) string {
		n, err := strconv.Atoi(match[len("line "):])
		if place, ok := d.origins[n]; ok && err == nil {
			return place.String()
		}
		return match
	})
}
