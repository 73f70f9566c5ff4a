package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// builder makes the objects of a tree and collects the errors in them.
type builder struct {
	items map[model.Kind][]*Item
	// keysOf has the keys of an object, for each kind that occurred.
	keysOf map[model.Kind]objectKeys
	// seen has the line of each object.
	seen map[model.Key]int
	base model.Mark
	errs []model.FieldError
}

func (b *builder) fail(line int, at, format string, args ...any) {
	if len(b.errs) < maxErrors {
		b.errs = append(b.errs, model.FieldError{Field: place(line, at), Message: fmt.Sprintf(format, args...)})
	}
}

// objectKeys are the keys that an object of a kind may have.
type objectKeys struct {
	// known are all of them; those of the fields come first.
	known  []string
	fields []form.Field
	lists  map[string]model.Kind
}

func (b *builder) keysFor(kind model.Kind) objectKeys {
	if k, met := b.keysOf[kind]; met {
		return k
	}
	k := objectKeys{fields: form.Fields(kind), lists: map[string]model.Kind{}}
	for _, f := range k.fields {
		k.known = append(k.known, fieldKey(f))
	}
	for _, l := range listsOf(kind) {
		k.known = append(k.known, l.key)
		k.lists[l.key] = l.kind
	}
	if parts := partsOf(kind); parts.kind != "" {
		k.known = append(k.known, parts.key)
	}
	b.keysOf[kind] = k
	return k
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// entries returns the values of a mapping under the known keys, ignoring case.
func (b *builder) entries(n *yaml.Node, at string, known []string) []entry {
	var list []entry
	has := &keys{line: n.Line}
	for i := 0; i+1 < len(n.Content) && !b.hasMaxErrors(); i += 2 {
		key, line := strings.ToLower(n.Content[i].Value), n.Content[i].Line
		if b.key(has, key, line, at, known) {
			list = append(list, entry{key, line, n.Content[i+1]})
		}
	}
	return list
}

// key checks one key of a mapping.
func (b *builder) key(has *keys, key string, line int, at string, known []string) bool {
	where := func() string { return strings.TrimPrefix(at+"."+clip(key), ".") }
	if !slices.Contains(known, key) {
		if err := form.CheckText(key); err != nil {
			b.fail(line, at, "a key %s", err)
		} else {
			b.fail(line, where(), "%s", unknown(key, known))
		}
		return false
	}
	if slices.Contains(has.seen, key) {
		b.fail(line, where(), "appears twice")
		return false
	}
	has.seen = append(has.seen, key)
	return true
}

func unknown(key string, known []string) string {
	if best, near := suggest.Nearest(clip(key), known); near {
		return "is unknown; did you mean " + best + "?"
	}
	return "is unknown; known keys are " + strings.Join(known, ", ")
}

func (b *builder) document(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		b.fail(root.Line, "", "the document must begin with version: %d, not with %s", Version, shape(root))
		return
	}
	top := &keys{line: root.Line}
	for _, e := range b.entries(root, "", knownKeys()) {
		top.seen = append(top.seen, e.key)
		b.topValue(e)
	}
	b.hasVersion(top)
}

func (b *builder) version(e entry) {
	if e.value.Kind != yaml.ScalarNode || e.value.Value != fmt.Sprint(Version) || shape(e.value) != form.IsNumber {
		b.fail(e.line, "version", "must be %d, the only version that this program supports", Version)
	}
}

func (b *builder) revision(e entry) {
	digits, id, ok := strings.Cut(e.value.Value, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || e.value.Kind != yaml.ScalarNode {
		b.fail(e.line, "revision", "must be a revision as gatehouse dump writes it; without this line, nothing is compared")
	}
	b.base = model.Mark{Revision: n, ID: id}
}

func (b *builder) hasVersion(top *keys) {
	if !slices.Contains(top.seen, "version") {
		b.fail(top.line, "version", "is required; write version: %d", Version)
	}
}

// objects reads a list of objects; owner is the name of the object that parts are
// inside.
func (b *builder) objects(kind model.Kind, owner, at string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		b.fail(n.Line, at, "must be a list, not %s; omit it if it is empty", shape(n))
		return
	}
	for i, element := range n.Content {
		if b.hasMaxErrors() {
			return
		}
		b.object(kind, owner, at, i, element)
	}
}

func (b *builder) object(kind model.Kind, owner, section string, i int, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		b.fail(n.Line, fmt.Sprintf("%s[%d]", section, i), "must be an object, not %s", shape(n))
		return
	}
	of := b.keysFor(kind)
	// The first field of each kind is its name.
	name := nameOf(n, of.known[0])
	at := section + "[" + strconv.Itoa(i) + "]"
	if name != "" {
		at = section + "[" + strconv.Quote(clip(name)) + "]"
	}
	item := &Item{Object: model.NewKey(kind, owner).New(), Line: n.Line, At: at, Lists: map[model.Kind][]Link{}}
	parts := partsOf(kind)
	item.absent = 1<<len(of.fields) - 1
	sent := make([]form.Value, 0, len(n.Content)/2)
	entries := b.entries(n, at, of.known)
	var unread []string
	for _, e := range entries {
		if i := slices.Index(of.known, e.key); i < len(of.fields) {
			item.absent &^= 1 << i
		}
		list, isList := of.lists[e.key]
		switch {
		case isList:
			item.Lists[list] = b.names(at+"."+e.key, e.value)
		case parts.kind != "" && e.key == parts.key:
			b.objects(parts.kind, name, at+"."+e.key, e.value)
		default:
			if v, err := value(e.key, e.value); err != nil {
				b.fail(e.line, at+"."+e.key, "%s", err)
				unread = append(unread, e.key)
			} else {
				sent = append(sent, v)
			}
		}
	}
	b.bind(item, of.fields, sent, entries, unread)
	b.add(item, name)
}

// bind sets the fields of the object and reports the bad ones, except for unread ones,
// which were already reported.
func (b *builder) bind(item *Item, fields []form.Field, sent []form.Value, entries []entry, unread []string) {
	errs := form.BindFields(item.Object, fields, sent, true)
	if p, ok := item.Object.(*model.Proxy); ok && settlePorts(item, p) {
		errs = form.BindFields(item.Object, fields, sent, true)
	}
	for _, e := range errs {
		field := lowerField(e.Field)
		first, _, _ := strings.Cut(field, ".")
		if slices.Contains(unread, first) {
			continue
		}
		line := item.Line
		if i := slices.IndexFunc(entries, func(e entry) bool { return e.key == first }); i >= 0 {
			line = entries[i].line
		}
		b.fail(line, item.At+"."+field, "%s", e.Message)
	}
	// An empty list in it is stored as no list.
	if r, ok := item.Object.(*model.Route); ok && !reflect.ValueOf(r.Config).IsZero() {
		if text, err := json.Marshal(r.Config); err == nil {
			if config, err := model.ParseRouteConfig(string(text)); err == nil {
				r.Config = config
			}
		}
	}
}

// settlePorts changes the default of a port that the text does not have if it equals
// the other port. The port that the proxy gets instead is known only when the document
// is applied.
func settlePorts(item *Item, p *model.Proxy) bool {
	if p.HTTPPort != p.HTTPSPort {
		return false
	}
	for i, f := range form.Fields(model.KindProxy) {
		if port := map[string]*int{"http_port": &p.HTTPPort, "https_port": &p.HTTPSPort}[fieldKey(f)]; port != nil &&
			item.isAbsent(i) {
			*port = *port%65535 + 1
			return true
		}
	}
	return false
}

func (b *builder) add(item *Item, name string) {
	key := item.Object.Key()
	if first, twice := b.seen[key]; twice && name != "" {
		b.fail(item.Line, item.At, "appears twice; the first is on line %d", first)
		return
	}
	b.seen[key] = item.Line
	b.items[key.Kind] = append(b.items[key.Kind], item)
}

// names reads a list of names.
func (b *builder) names(at string, n *yaml.Node) []Link {
	if n.Kind != yaml.SequenceNode {
		b.fail(n.Line, at, "must be a list of names, not %s; omit it to keep what is attached", shape(n))
		return nil
	}
	var seen map[string]bool
	if len(n.Content) > 1 {
		seen = make(map[string]bool, len(n.Content))
	}
	links := make([]Link, 0, len(n.Content))
	for i, element := range n.Content {
		if b.hasMaxErrors() {
			break
		}
		if message := badName(element, seen); message != "" {
			b.fail(element.Line, fmt.Sprintf("%s[%d]", at, i), "%s", message)
		}
		if seen != nil {
			seen[element.Value] = true
		}
		links = append(links, Link{Name: element.Value, Line: element.Line})
	}
	return links
}

// badName says why an element of a list is not a valid name; seen has the elements
// before it.
func badName(n *yaml.Node, seen map[string]bool) string {
	if is := shape(n); is != form.IsText {
		return "must be a name, not " + string(is)
	}
	if n.Value == "" {
		return "must be a name, not empty"
	}
	if err := form.CheckText(n.Value); err != nil {
		return err.Error()
	}
	if seen[n.Value] {
		return strconv.Quote(clip(n.Value)) + " appears twice"
	}
	return ""
}

// nameOf returns the text under key, or "".
func nameOf(n *yaml.Node, key string) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v := n.Content[i+1]; strings.EqualFold(n.Content[i].Value, key) && shape(v) == form.IsText {
			return v.Value
		}
	}
	return ""
}

// clip prevents a hostile name from filling the errors.
func clip(name string) string {
	if len(name) <= 253 {
		return name
	}
	return strings.ToValidUTF8(name[:250], "") + "..."
}

// shape returns the shape of a node's value, as form names it.
func shape(n *yaml.Node) form.Shape {
	switch n.Kind {
	case yaml.MappingNode:
		return form.IsObject
	case yaml.SequenceNode:
		return form.IsArray
	}
	if n.Style&quoted == 0 && isJSONNumber(n.Value) {
		return form.IsNumber
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return form.IsNumber
	case "!!bool":
		return form.IsBool
	case "!!null":
		return form.IsNull
	}
	return form.IsText // also what YAML reads as a date
}

// value returns a field in the form that pkg/input/form reads.
func value(name string, n *yaml.Node) (form.Value, error) {
	v := form.Value{Name: name, Shape: shape(n), Text: n.Value}
	if v.Shape == form.IsText || n.Kind == yaml.ScalarNode && n.Style&quoted == 0 && isJSONNumber(n.Value) {
		return v, nil
	}
	text, err := jsonText(n)
	v.Text = text
	return v, err
}
