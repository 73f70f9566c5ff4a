package kong

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Options say what the file does not.
type Options struct {
	// Proxy is the name of the proxy that the services are attached to; empty for none.
	Proxy string
}

// Result is a document, and what it does not say as the file did.
type Result struct {
	Document []byte
	Notes    []Note
}

// document is a configuration document. Objects have the fields of the REST API.
type document struct {
	Version       int              `yaml:"version"`
	Upstreams     []map[string]any `yaml:"upstreams,omitempty"`
	KeySets       []map[string]any `yaml:"keysets,omitempty"`
	Consumers     []map[string]any `yaml:"consumers,omitempty"`
	GlobalConfigs []map[string]any `yaml:"globalconfigs,omitempty"`
	Filters       []map[string]any `yaml:"filters,omitempty"`
	Services      []map[string]any `yaml:"services,omitempty"`
	Proxies       []map[string]any `yaml:"proxies,omitempty"`
}

// builder makes the document.
type builder struct {
	*file
	doc document
	// leads are the names of the upstreams of services, filters those of what is in doc.Filters, of their plugins.
	leads   map[string][]string
	filters map[string]bool
	// limits are the rules for rate limits, by the name that they have in descriptors.
	limits map[string]map[string]any
	order  []string
	// users are those of basicUsers.
	users []map[string]any
	// translated has the plugins that were tried, and whether their routes are closed; names those of their filters.
	translated map[*plugin]bool
	names      map[*plugin]string
}

func (b *builder) note(n Note) {
	if !slices.Contains(b.notes, n) {
		b.notes = append(b.notes, n)
	}
}

// Import translates a file.
func Import(in io.Reader, o Options) (*Result, error) {
	f, err := read(in)
	if err != nil {
		return nil, err
	}
	if len(f.services) == 0 {
		return nil, errors.New("the file has no services")
	}
	b := &builder{file: f, leads: map[string][]string{}, filters: map[string]bool{}, limits: map[string]map[string]any{},
		translated: map[*plugin]bool{}, names: map[*plugin]string{}}
	b.doc.Version = 1
	b.addConsumers()
	var names []any
	for _, host := range f.hosts() {
		s := b.service(host)
		b.doc.Services = append(b.doc.Services, s)
		names = append(names, s["service_name"])
	}
	b.addLimits()
	if o.Proxy != "" {
		b.doc.Proxies = []map[string]any{{"name": o.Proxy, "services": names}}
	}
	text, err := yaml.Marshal(b.doc)
	slices.SortStableFunc(b.notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	return &Result{text, b.notes}, err
}
