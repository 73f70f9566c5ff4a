package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// call is a call in api/calls.yaml.
type call struct {
	ID, Tag, Summary, Description, Form, Body string
	Write, Public                             bool
	Parameters                                []string
	Answers                                   map[int]string
	Errors                                    []int
}

// calls returns the sections of the OpenAPI document that follow from the kinds and the templates in a file. configs
// are the types of configurations.
func (s *source) calls(path string, configs map[model.Kind][]configType) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var templates struct {
		Each, Object, Link, User, Form yaml.Node
		Rest                           yaml.Node
	}
	if err := strictly(text, &templates); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	all := mapping()
	add := func(template *yaml.Node, words []string) {
		if err == nil {
			err = fill(all, template, words)
		}
	}
	for _, kind := range model.Kinds() {
		words, wrong := s.wordsOf(kind)
		if wrong != nil {
			return nil, wrong
		}
		add(&templates.Each, words)
		if kind.Row().Attaches() != "" {
			add(&templates.Link, words)
			continue
		}
		add(&templates.Object, words)
		objects, wrong := s.objectSchemas(kind, configs[kind])
		if wrong != nil {
			return nil, wrong
		}
		merge(all, mapping("schemas", objects))
		for user, use := range usersOf(kind) {
			add(&templates.User, append(wordsFor("user", user), append(words, "<use>", use)...))
		}
	}
	add(&templates.Rest, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var calls map[string]map[string]call
	if text, err = yaml.Marshal(get(all, "paths")); err == nil {
		err = strictly(text, &calls)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	paths, forms, err := pathItems(calls)
	for _, form := range forms {
		add(&templates.Form, []string{"<Form>", form})
	}
	sections := map[string]string{}
	write := func(section string, m *yaml.Node, indent int) {
		if err == nil {
			sections[section], err = show(m, indent)
		}
	}
	write("paths", paths, 2)
	write("forms", get(all, "requestBodies"), 4)
	write("answers of kinds", get(all, "responses"), 4)
	write("schemas of kinds", get(all, "schemas"), 4)
	return sections, err
}

// strictly reads YAML, and refuses an unknown key.
func strictly(text []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	return dec.Decode(into)
}

// usersOf returns the kinds of what attaches or names objects of a kind, and which it does.
func usersOf(kind model.Kind) map[model.Kind]string {
	users := map[model.Kind]string{}
	for _, user := range slices.Backward(kind.UserKinds()) { // one that attaches it wins
		if row := user.Row(); row.Attaches() == kind {
			users[row.Owner()] = article(noun(kind)) + " is attached to"
		} else {
			users[user] = "name " + article(noun(kind))
		}
	}
	return users
}

// wordsOf returns the words of the templates for a kind, each with what it stands for.
func (s *source) wordsOf(kind model.Kind) ([]string, error) {
	row, owner := kind.Row(), kind.Row().Owner()
	words := append(wordsFor("kind", kind), "<path>", pathOf(kind), "<list>", pathOf(owner)+"/"+string(kind),
		"<owner path>", pathOf(owner))
	tag, many, one := kind, plural(noun(kind)), article(noun(kind))
	if owner != "" {
		words = append(words, wordsFor("owner", owner)...)
		many, one = "the "+many+" of "+article(noun(owner)), one+" of "+article(noun(owner))
	}
	if kind == model.KindAPIKey {
		tag = owner
	}
	words = append(words, "<tag>", string(tag), "<kinds of owner>", many, "<a kind of owner>", one)
	if attached := row.Attaches(); attached != "" {
		return append(words, wordsFor("attached", attached)...), nil
	}
	example, err := s.example(kind)
	return append(words, "<example>", example), err
}

// wordsFor returns the words that stand for a kind in a role.
func wordsFor(role string, kind model.Kind) []string {
	return []string{
		"<" + role + ">", string(kind),
		"<" + title(role) + ">", title(string(kind)), "<" + plural(title(role)) + ">", plural(title(string(kind))),
		"<" + role + " noun>", noun(kind),
		"<" + article(role) + ">", article(noun(kind)), "<" + plural(role) + ">", plural(noun(kind)),
	}
}

// noun is the word for an object of a kind in a sentence.
func noun(kind model.Kind) string {
	switch {
	case kind.Row().Attaches() != "":
		return "link"
	case kind == model.KindGlobalConfig:
		return "global config"
	case kind == model.KindKeySet:
		return "key set"
	}
	return string(kind)
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

func plural(word string) string { return strings.Replace(word+"s", "xys", "xies", 1) }

// title is the name of a schema for a kind: RouteFilter for route_filter.
func title(kind string) (name string) {
	if kind == string(model.KindList) {
		return "SharedList" // List is a name that clients in many languages have already
	}
	for word := range strings.SplitSeq(kind, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// pathOf is the path of an object or link of a kind; empty for no kind.
func pathOf(kind model.Kind) (path string) {
	for _, word := range kind.Row().Path {
		if word != "" {
			path += "/" + string(word) + "/{" + string(word) + "}"
		}
	}
	return path
}

// example returns an object as answers show it, in JSON: with the values of the example of its Go type, and defaults.
func (s *source) example(kind model.Kind) (string, error) {
	obj := model.New(kind)
	t := s.types[reflect.TypeOf(obj).Elem().Name()]
	if t == nil || t.doc.keywords["example"] == nil {
		return "", fmt.Errorf("pkg/core/model: %T needs +example in its comment", obj)
	}
	var given map[string]any
	if err := t.doc.keywords["example"].Decode(&given); err != nil {
		return "", err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, obj); err != nil {
		return "", fmt.Errorf("pkg/core/model: the example of a %T: %w", obj, err)
	}
	m := obj.Meta()
	*m.ID, *m.CreateTS = 1, model.At(time.Date(2026, 11, 21, 8, 7, 39, 123_456_000, time.UTC))
	*m.UpdateTS = *m.CreateTS
	if text, err = json.Marshal(obj); err != nil {
		return "", err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return "", err
	}
	shown := n.Content[0]
	known, err := s.fieldsOf(kind)
	for _, f := range known {
		if f.doc.keywords["writeOnly"] != nil {
			remove(shown, f.json)
		}
	}
	merge(shown, t.doc.keywords["example"])
	plain(shown)
	text, wrong := yaml.Marshal(shown)
	return strings.TrimSpace(string(text)), errors.Join(err, wrong)
}

// remove removes a value from a mapping.
func remove(m *yaml.Node, name string) {
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			m.Content = slices.Delete(m.Content, i, i+2)
		}
	}
}

// plain removes quotation marks where YAML needs none.
func plain(n *yaml.Node) {
	n.Style &^= yaml.DoubleQuotedStyle
	for _, part := range n.Content {
		plain(part)
	}
}

// fill adds a template, with the words replaced by what they stand for, to a mapping.
func fill(to, template *yaml.Node, words []string) error {
	text, err := yaml.Marshal(template)
	if err != nil {
		return err
	}
	replaced := strings.NewReplacer(words...).Replace(string(text))
	if unknown := regexp.MustCompile(`<[A-Za-z ]+>`).FindString(replaced); unknown != "" {
		return fmt.Errorf("%s stands for nothing", unknown)
	}
	var filled yaml.Node
	if err := yaml.Unmarshal([]byte(replaced), &filled); err != nil {
		return err
	}
	merge(to, filled.Content[0])
	return nil
}

// merge adds a mapping to another one. Where both have a value, the later one wins; two mappings are merged, unless the
// later one is a reference, next to which nothing is allowed.
func merge(to, from *yaml.Node) {
	for i := 0; i < len(from.Content); i += 2 {
		name, value := from.Content[i], from.Content[i+1]
		switch old := get(to, name.Value); {
		case old == nil:
			to.Content = append(to.Content, name, value)
		case old.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode && get(value, "$ref") == nil:
			merge(old, value)
		default:
			*old = *value
		}
	}
}

// get returns a value of a mapping; nil means that there is none.
func get(m *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i+1]
		}
	}
	return nil
}

// pathItems returns the calls as OpenAPI has them, and the names of their forms.
func pathItems(calls map[string]map[string]call) (*yaml.Node, []string, error) {
	items, forms := mapping(), map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(calls)) {
		item, names := mapping(), namesIn(path)
		if len(names) > 0 {
			item = mapping("parameters", references("parameters", names))
		}
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			c, ok := calls[path][method]
			if !ok {
				continue
			}
			if c.Form != "" {
				c.Body, forms[c.Form] = c.Form+"Body", true
			}
			op, err := c.operation(len(names) > 0)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			item.Content = append(item.Content, scalar(method), op)
		}
		items.Content = append(items.Content, scalar(path), item)
	}
	return items, slices.Sorted(maps.Keys(forms)), nil
}

// namesIn lists the parameters of a path by their names in the document.
func namesIn(path string) (names []string) {
	special := map[string]string{"a": "originalName", "b": "copyName", "revision": "revisionNumber", "asset": "asset"}
	for _, found := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
		names = append(names, cmp.Or(special[found[1]], found[1]+"Name"))
	}
	return names
}

// operation returns a call with all that the kind of call decides; named says that its path has a name.
func (c call) operation(named bool) (*yaml.Node, error) {
	if c.ID == "" || c.Tag == "" || c.Summary == "" || len(c.Answers) == 0 {
		return nil, errors.New("a call needs id, tag, summary and answers")
	}
	errs := append([]int{406}, c.Errors...)
	if !c.Public {
		errs = append(errs, 400, 401, 403, 429, 503)
	}
	if named {
		errs = append(errs, 404)
	}
	if c.Write {
		headers := slices.IndexFunc(c.Parameters, func(name string) bool { return strings.HasPrefix(name, "if") })
		if headers < 0 {
			headers = len(c.Parameters)
		}
		c.Parameters = slices.Insert(c.Parameters, headers, "onlyTry", "wait", "timeout", "message")
		c.Answers[202] = "LaggingResponse"
		errs = append(errs, 405, 409, 422)
	}
	if c.Body != "" {
		errs = append(errs, 413, 415)
	}
	if slices.Contains(c.Parameters, "ifMatch") {
		errs = append(errs, 412)
	}
	if slices.Contains(c.Parameters, "ifNoneMatch") {
		errs = append(errs, 304)
	}
	for _, status := range errs {
		if c.Answers[status] != "" {
			continue // the call has its own
		}
		if c.Answers[status] = refusals()[status]; c.Answers[status] == "" {
			return nil, fmt.Errorf("no answer is known for the status %d", status)
		}
	}
	answers := mapping()
	for _, status := range slices.Sorted(maps.Keys(c.Answers)) {
		answers.Content = append(answers.Content, scalar(strconv.Itoa(status)), reference("responses", c.Answers[status]))
	}

	op := mapping("tags", list([]string{c.Tag}), "operationId", scalar(c.ID), "summary", scalar(c.Summary))
	if c.Description != "" {
		merge(op, mapping("description", scalar(c.Description)))
	}
	if c.Public {
		merge(op, mapping("security", list(nil)))
	}
	if len(c.Parameters) > 0 {
		merge(op, mapping("parameters", references("parameters", c.Parameters)))
	}
	if c.Body != "" {
		merge(op, mapping("requestBody", reference("requestBodies", c.Body)))
	}
	merge(op, mapping("responses", answers))
	return op, nil
}

// refusals are the names of the answers that are the same for all calls.
func refusals() map[int]string {
	return map[int]string{
		304: "NotModified", 400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound",
		405: "MethodNotAllowed", 406: "NotAcceptable", 409: "Conflict", 410: "Gone", 412: "PreconditionFailed",
		413: "TooLarge", 415: "UnsupportedMediaType", 422: "CannotWork", 429: "TooManyRequests", 503: "Unavailable",
	}
}

func reference(section, name string) *yaml.Node {
	to := scalar("#/components/" + section + "/" + name)
	to.Style = yaml.DoubleQuotedStyle
	return mapping("$ref", to)
}

func references(section string, names []string) *yaml.Node {
	n := list(nil)
	for _, name := range names {
		n.Content = append(n.Content, reference(section, name))
	}
	return n
}
