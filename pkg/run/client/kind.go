package client

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// Kind is a sort of object as a user names it.
type Kind struct {
	// Name is the word in paths; it may also be given with an s behind.
	Name string
	// NameField is the field that holds an object's name.
	NameField string
	// Columns are the fields worth a column in a table.
	Columns []string
	// In is the kind that such objects are inside of; their name is that of one of it, a slash
	// and their own.
	In string
	// AttachTo are the kinds that such an object can be attached to.
	AttachTo []string

	fields []form.Field
}

// Kinds lists the kinds of the model that are objects.
func Kinds() (kinds []Kind) {
	for _, kind := range model.Kinds() {
		row := kind.Row()
		if row.Attaches() != "" {
			continue
		}
		k := Kind{Name: string(kind), In: string(row.Owner()), fields: form.Fields(kind)}
		k.NameField = strings.ToLower(k.fields[0].Name)
		k.Columns = columns(kind, k.fields)
		for _, user := range kind.UserKinds() {
			if user.Row().Attaches() == kind {
				k.AttachTo = append(k.AttachTo, string(user.Row().Owner()))
			}
		}
		kinds = append(kinds, k)
	}
	slices.SortStableFunc(kinds, func(a, b Kind) int { return cmp.Compare(a.rank(), b.rank()) })
	return kinds
}

// rank orders kinds by how often they are meant.
func (k Kind) rank() int {
	first := []string{"upstream", "service", "route", "proxy", "filter", "globalconfig", "secret"}
	if at := slices.Index(first, k.Name); at >= 0 {
		return at
	}
	return len(first)
}

// columns are the fields of a kind that are worth a column: the first ones, unless others say more.
func columns(kind model.Kind, fields []form.Field) (names []string) {
	switch kind {
	case model.KindUpstream:
		return []string{"upstream_ip", "upstream_port", "upstream_weight", "upstream_protocol"}
	case model.KindFilter, model.KindGlobalConfig:
		return []string{string(kind) + "_type"}
	case model.KindAPIKey:
		return []string{"key_description", "key_expires"}
	case model.KindService:
		return []string{"fqdn"}
	}
	for _, f := range fields[1:min(len(fields), 4)] {
		if name := strings.ToLower(f.Name); name != "tags" {
			names = append(names, name)
		}
	}
	return names
}

// FindKind finds a kind by its name or plural, without regard to case.
func FindKind(word string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if lower := strings.ToLower(word); lower == k.Name || lower == k.Plural() {
			return k, nil
		}
		names = append(names, k.Name)
	}
	if best, near := suggest.Nearest(word, names); near {
		return Kind{}, fmt.Errorf("%q is not a kind of object; did you mean %s?", word, best)
	}
	return Kind{}, fmt.Errorf("%q is not a kind of object; the kinds are %s", word, strings.Join(names, ", "))
}

// Plural is the kind's other name.
func (k Kind) Plural() string {
	if k.Name == "proxy" {
		return "proxies"
	}
	return k.Name + "s"
}

// One is the kind with its article, for a sentence.
func (k Kind) One() string {
	if strings.ContainsAny(k.Name[:1], "aeiou") {
		return "an " + k.Name
	}
	return "a " + k.Name
}

// Path is the path of the object called name; of a route, SERVICE/NAME, of a key, KEYSET/NAME.
func (k Kind) Path(name string) (string, error) {
	parts := strings.Split(name, "/")
	switch {
	case slices.Contains(parts, ""):
		return "", fmt.Errorf("%q is not the name of one %s", name, k.Name)
	case k.In != "" && len(parts) == 2:
		return Path(k.In, parts[0], k.Name, parts[1]), nil
	case k.In != "":
		return "", fmt.Errorf("%q does not name a %s; write %s/%s", name, k.Name, strings.ToUpper(k.In),
			strings.ToUpper(k.Name))
	case len(parts) != 1:
		return "", fmt.Errorf("%q is not the name of one %s: a name has no slash", name, k.Name)
	}
	return Path(k.Name, name), nil
}

// ParseObject reads KIND/NAME; a route is service/SERVICE/route/ROUTE or
// route/SERVICE/ROUTE, and so is a key of a set.
func ParseObject(text string) (k Kind, name string, err error) {
	word, name, ok := strings.Cut(text, "/")
	if !ok || name == "" {
		return Kind{}, "", fmt.Errorf("%q does not name an object; "+
			"write KIND/NAME such as upstream/blue or service/shop/route/root", text)
	}
	if k, name, err = findNamed(word, name); err != nil {
		return Kind{}, "", err
	}
	_, err = k.Path(name)
	return k, name, err
}

// findNamed finds the kind of an object by a word before its name, which may be that of its owner.
func findNamed(word, name string) (Kind, string, error) {
	k, err := FindKind(word)
	if err != nil {
		return Kind{}, "", err
	}
	parts := strings.Split(name, "/")
	if len(parts) != 3 || !slices.ContainsFunc(Kinds(), func(inner Kind) bool { return inner.In == k.Name }) {
		return k, name, nil
	}
	inner, err := FindKind(parts[1])
	if err != nil {
		return Kind{}, "", err
	}
	if inner.In == k.Name {
		return inner, parts[0] + "/" + parts[2], nil
	}
	return k, name, nil
}

// SplitObjects returns the objects that arguments name, each as one KIND/NAME or as KIND and NAME,
// in the first form. A kind at the end may have no name.
func SplitObjects(args []string) (objects []string) {
	for len(args) > 0 {
		n := 1
		if !strings.Contains(args[0], "/") {
			n = min(2, len(args))
		}
		objects = append(objects, strings.Join(args[:n], "/"))
		args = args[n:]
	}
	return objects
}

// ParseList reads KIND, KIND/NAME, or the kind of parts and the name of their owner. name is empty
// if the arguments name no object of the kind.
func ParseList(text string) (k Kind, name string, err error) {
	word, name, _ := strings.Cut(text, "/")
	return findNamed(word, name)
}

// LinkPath is the path of the link that attaches what to target, both as
// ParseObject reads them.
func LinkPath(what, target string) (string, error) {
	a, aName, err := ParseObject(what)
	if err != nil {
		return "", err
	}
	b, bName, err := ParseObject(target)
	if err != nil {
		return "", err
	}
	if !slices.Contains(a.AttachTo, b.Name) {
		return "", attachError(a, b, what, target)
	}
	path, err := b.Path(bName)
	if err != nil {
		return "", err
	}
	return path + Path(a.Name, aName), nil
}

func attachError(a, b Kind, what, target string) error {
	switch {
	case slices.Contains(b.AttachTo, a.Name):
		return fmt.Errorf("name the object to attach first: %s %s", target, what)
	case len(a.AttachTo) == 0:
		return fmt.Errorf("%s are not attached to anything", a.Plural())
	}
	return fmt.Errorf("%s cannot be attached to %s, only to a %s", a.Plural(), b.Plural(),
		strings.Join(a.AttachTo, " or a "))
}

// History is the query of GET /revision for the revisions that changed an object.
func (k Kind) History(name string) (url.Values, error) {
	if _, err := k.Path(name); err != nil {
		return nil, err
	}
	object := "/" + k.Name + "/" + name
	if owner, own, inside := strings.Cut(name, "/"); inside {
		object = "/" + k.In + "/" + owner + "/" + k.Name + "/" + own
	}
	return url.Values{"object": {object}}, nil
}
