package document

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// WriteOptions say what a document shows, and how.
type WriteOptions struct {
	// JSON writes JSON; otherwise it is YAML.
	JSON bool
	// Sealed writes secret values as sealed text. Without it, secrets have no contents,
	// and secret texts elsewhere are model.Redacted.
	Sealed bool
	// Tag, if set, omits the objects that do not have it, except routes, which follow
	// their service.
	Tag string
	// Revision writes the revision of the configuration, with which Apply recognizes what was changed
	// in the meantime.
	Revision bool
}

// Write writes the configuration as one document, a page of objects at a time. Objects
// are sorted by name. Fields with their default are omitted, except those of proxies.
func Write(w io.Writer, r store.Reader, opts WriteOptions) error {
	p := newPrinter(w, opts.JSON)
	if opts.Revision {
		at, err := r.Mark()
		if err != nil {
			return err
		}
		p.revision(at)
	}
	for _, s := range sections() {
		after := ""
		for {
			page, err := r.List(store.Query{Kind: s.kind, Tag: opts.Tag, ByName: true, AfterName: after, Limit: pageSize})
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			after = page[len(page)-1].Key().Name()
			items, err := itemsOf(r, s.kind, page)
			if err != nil {
				return err
			}
			if err := p.section(s.key, nodesOf(items, opts.Sealed)); err != nil {
				return err
			}
		}
	}
	return p.end()
}

// Encode writes a document that was built in memory, like Write but in the order of its
// items, and with the contents of its secrets.
func Encode(w io.Writer, doc *Document, asJSON bool) error {
	p := newPrinter(w, asJSON)
	for _, s := range sections() {
		var items []*Item
		for _, item := range doc.Items {
			if item.Object.Key().Kind.Row().Path[0] == s.kind {
				items = append(items, item)
			}
		}
		if err := p.section(s.key, nodesOf(items, true)); err != nil {
			return err
		}
	}
	return p.end()
}

// itemsOf makes items from a page of objects, with parts and links.
func itemsOf(r store.Reader, kind model.Kind, page []model.Object) ([]*Item, error) {
	keys := make([]model.Key, len(page))
	for i, o := range page {
		keys[i] = o.Key()
	}
	var queries []store.Query
	for _, k := range model.Kinds() {
		if row := k.Row(); row.Path[0] == kind && k != kind {
			queries = append(queries, store.Query{Kind: k, To: keys, ByName: true})
		}
	}
	byKey := map[model.Key]*Item{}
	var items []*Item
	add := func(o model.Object) {
		item := &Item{Object: o, Lists: map[model.Kind][]Link{}}
		for _, l := range listsOf(o.Key().Kind) {
			if l.kind == model.KindProxyService && o.Key().Kind == model.KindService {
				continue // its proxies name it
			}
			item.Lists[l.kind] = []Link{}
		}
		byKey[o.Key()] = item
		items = append(items, item)
	}
	for _, o := range page {
		add(o)
	}
	for _, q := range queries {
		objs, err := r.List(q)
		if err != nil {
			return nil, err
		}
		for _, o := range objs {
			if isPart(o.Key().Kind) {
				add(o)
			} else if owner := byKey[o.Key().Owner()]; owner != nil {
				k := o.Key().Kind
				owner.Lists[k] = append(owner.Lists[k], Link{Name: o.Key().Attached().Name()})
			}
		}
	}
	return items, nil
}

// nodesOf makes nodes from items; parts go into their owners.
func nodesOf(items []*Item, sealed bool) []*yaml.Node {
	var nodes []*yaml.Node
	lists := map[model.Key]*yaml.Node{}
	for _, item := range items {
		n, key := nodeOf(item, sealed), item.Object.Key()
		if isPart(key.Kind) {
			if list := lists[key.Owner()]; list != nil {
				list.Content = append(list.Content, n)
			}
			continue
		}
		if parts := partsOf(key.Kind); parts.kind != "" {
			lists[key] = sequence()
			put(n, parts.key, lists[key])
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func nodeOf(item *Item, sealed bool) *yaml.Node {
	obj := item.Object
	if !sealed {
		obj = model.RedactObject(obj)
		if s, ok := obj.(*model.Secret); ok {
			s.Cert, s.PrivateKey, s.Value = "", "", "" // a copy
		}
	}
	kind := obj.Key().Kind
	n, defaults := mapping(), model.New(kind)
	for _, f := range form.Fields(kind) {
		v := f.Get(obj)
		isDefault := reflect.DeepEqual(v, f.Get(defaults))
		if tags, ok := v.([]string); ok && len(tags) == 0 || isDefault && !f.Required && (ok || kind != model.KindProxy) {
			continue
		}
		put(n, fieldKey(f), valueNode(v))
	}
	for _, l := range listsOf(kind) {
		links, there := item.Lists[l.kind]
		if !there {
			continue
		}
		list := sequence()
		for _, link := range links {
			list.Content = append(list.Content, textNode(link.Name))
		}
		put(n, l.key, list)
	}
	return n
}

// valueNode returns the node for the value of a field, as form.Field.Get returns it.
func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case int:
		return plainNode(strconv.Itoa(v), "!!int")
	case bool:
		return plainNode(strconv.FormatBool(v), "!!bool")
	case []string:
		list := sequence()
		for _, word := range v {
			list.Content = append(list.Content, textNode(word))
		}
		return list
	case json.RawMessage:
		if n, err := parseJSON(v); err == nil { // stored values are well formed
			return n
		}
	}
	return textNode(fmt.Sprint(v))
}

// printer writes the parts of a document.
type printer struct {
	w    *bufio.Writer
	json bool
	// open is the section that was written last.
	open string
}

func newPrinter(w io.Writer, asJSON bool) *printer {
	p := &printer{w: bufio.NewWriter(w), json: asJSON}
	// bufio keeps the first error for Flush.
	if asJSON {
		p.put(fmt.Sprintf("{\n  \"version\": %d", Version))
	} else {
		p.put(fmt.Sprintf("version: %d\n", Version))
	}
	return p
}

func (p *printer) revision(at model.Mark) {
	text := fmt.Sprintf("\"%d-%s\"", at.Revision, at.ID)
	if p.json {
		p.put(",\n  \"revision\": " + text)
		return
	}
	p.put("revision: " + text + "\n")
}

// section writes objects of a section; previous ones may be of the same section.
func (p *printer) section(key string, nodes []*yaml.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	first := p.open != key
	if p.json {
		return p.jsonSection(key, nodes, first)
	}
	if first {
		p.open = key
		p.put(key + ":\n")
	}
	// One at a time: an encoder keeps everything it has encoded, so many nodes together
	// cost more than each alone.
	for _, n := range nodes {
		enc := yaml.NewEncoder(p.w)
		enc.SetIndent(2)
		enc.CompactSeqIndent()
		if err := errors.Join(enc.Encode(sequence(n)), enc.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) jsonSection(key string, nodes []*yaml.Node, first bool) error {
	for _, n := range nodes {
		switch {
		case !first:
			p.put(",\n    ")
		case p.open != "":
			p.put("\n  ],\n  \"" + key + "\": [\n    ")
		default:
			p.put(",\n  \"" + key + "\": [\n    ")
		}
		first, p.open = false, key
		text, err := jsonText(n)
		if err != nil {
			return err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(text), "    ", "  "); err != nil {
			return err
		}
		p.put(indented.String())
	}
	return nil
}

func (p *printer) end() error {
	if p.json {
		if p.open != "" {
			p.put("\n  ]")
		}
		p.put("\n}\n")
	}
	return p.w.Flush()
}

// put writes text. The writer keeps an error until Flush returns it.
func (p *printer) put(text string) { _, _ = p.w.WriteString(text) }
