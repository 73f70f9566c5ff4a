package kube

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// proxyFile is a file with the fields of the installation's proxies, which is watched. It belongs to one goroutine.
type proxyFile struct {
	path  string // empty means no file
	names []string
	// read is the content at the last read.
	read []byte
	// list are the proxies, in the order of names.
	list []*model.Proxy
}

// openProxyFile reads the file, if there is one. An error is one line for the user.
func openProxyFile(path string, names []string) (*proxyFile, error) {
	f := &proxyFile{path: path, names: names}
	if path == "" {
		var err error
		f.list, err = readProxies(nil, names)
		return f, err
	}
	if _, err := f.look(); err != nil {
		return nil, fmt.Errorf("--kubernetes-proxy-settings: %w", err)
	}
	return f, nil
}

// look reads the file again. It returns an error only once for the same content; the list then stays as it was.
func (f *proxyFile) look() (changed bool, err error) {
	if f.path == "" {
		return false, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		if f.list == nil {
			return false, err
		}
		return false, nil // it is being replaced
	}
	if f.read != nil && bytes.Equal(text, f.read) {
		return false, nil
	}
	f.read = text
	list, err := readProxies(text, f.names)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", f.path, err)
	}
	f.list = list
	return true, nil
}

// readProxies reads the proxies member of a configuration document. Proxies that it does not list get the defaults.
func readProxies(text []byte, names []string) ([]*model.Proxy, error) {
	by := map[string]*model.Proxy{}
	if len(bytes.TrimSpace(text)) > 0 {
		doc, err := document.Parse(text, "")
		if err != nil {
			return nil, withFields(err)
		}
		for _, item := range doc.Items {
			p, ok := item.Object.(*model.Proxy)
			if !ok {
				return nil, fmt.Errorf("line %d: %s is not a proxy: only proxies are allowed here", item.Line,
					item.Object.Key().Path())
			}
			if !slices.Contains(names, p.Name) {
				return nil, fmt.Errorf("line %d: --kubernetes-proxies has no proxy %q", item.Line, p.Name)
			}
			by[p.Name] = p
		}
	}
	list := make([]*model.Proxy, len(names))
	for i, name := range names {
		if list[i] = by[name]; list[i] == nil {
			list[i] = model.NewProxy()
			list[i].Name = name
		}
	}
	return list, nil
}

// withFields adds the errors of the fields to the text of an error.
func withFields(err error) error {
	e, ok := err.(*model.Error) //nolint:errorlint // document returns it as it is
	if !ok || len(e.Fields) == 0 {
		return err
	}
	var list []string
	for _, f := range e.Fields {
		list = append(list, f.Field+" "+f.Message)
	}
	return fmt.Errorf("%s: %s", e.Message, strings.Join(list, "; "))
}
