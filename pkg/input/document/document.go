package document

import (
	"fmt"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// Version is the version of the document format that this package knows.
const Version = 1

// maxErrors bounds the errors that are reported for one document.
const maxErrors = 100

// Document is a desired configuration.
type Document struct {
	// Items are the objects in the order of model.Kinds, and within a kind in the order of the
	// text.
	Items []*Item
	// Base is the revision that the document was read at; the zero value means that the text does
	// not say.
	Base model.Mark
}

// Item is one object of a document with the names of the objects attached to it.
type Item struct {
	Object model.Object
	// Lists has, by the kind of the link, what is to be attached. A missing kind changes nothing;
	// an empty list detaches everything.
	Lists map[model.Kind][]Link
	// absent has the bit of each field that the text does not have, by its index in form.Fields;
	// Object has the default there.
	absent uint64
	// Line is where the object begins in the text; 0 means that there is no text.
	Line int
	// At is its place, for example services["shop"].routes["root"].
	At string
}

// Link is one name in a list.
type Link struct {
	Name string
	Line int
}

// section is a list of objects in the document.
type section struct {
	key  string
	kind model.Kind
}

// sections returns those at the top level, in the order of writing.
func sections() []section {
	return []section{
		{"upstreams", model.KindUpstream}, {"secrets", model.KindSecret}, {"keysets", model.KindKeySet},
		{"consumers", model.KindConsumer}, {"lists", model.KindList},
		{"filters", model.KindFilter},
		{"globalconfigs", model.KindGlobalConfig}, {"services", model.KindService}, {"proxies", model.KindProxy},
	}
}

// partsOf returns the list of objects that are written inside an object of a kind; its kind is
// empty if there is none.
func partsOf(kind model.Kind) section {
	switch kind {
	case model.KindService:
		return section{"routes", model.KindRoute}
	case model.KindKeySet:
		return section{"keys", model.KindAPIKey}
	}
	return section{}
}

// isPart reports whether objects of a kind are written inside others.
func isPart(kind model.Kind) bool {
	row := kind.Row()
	return row.Owner() != "" && row.Attaches() == ""
}

// listsOf returns the lists of names in an object of a kind, in the order of writing.
func listsOf(kind model.Kind) []section {
	switch kind {
	case model.KindService:
		return []section{
			{"filters", model.KindServiceFilter}, {"secrets", model.KindServiceSecret}, {"proxies", model.KindProxyService},
		}
	case model.KindRoute:
		return []section{{"upstreams", model.KindRouteUpstream}, {"filters", model.KindRouteFilter}}
	case model.KindProxy:
		return []section{
			{"services", model.KindProxyService}, {"filters", model.KindProxyFilter}, {"globalconfigs", model.KindProxyGlobalConfig},
		}
	}
	return nil
}

// linkKey returns the key of the link of a kind from owner to the object with a name.
func linkKey(kind model.Kind, owner model.Key, name string) model.Key {
	if kind.Row().Attaches() == owner.Kind { // the only link that both ends may name
		return model.NewKey(kind, name, owner.Name())
	}
	return model.NewKey(kind, owner.Text(), name)
}

// isAbsent reports whether the text does not have the field with that index.
func (item *Item) isAbsent(field int) bool { return item.absent&(1<<field) != 0 }

// fieldKey returns the key of a field in the document.
func fieldKey(f form.Field) string { return strings.ToLower(f.Name) }

// place names a part of the document for an error; line 0 is left out.
func place(line int, at string) string {
	if line == 0 {
		return at
	}
	if at == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("line %d: %s", line, at)
}

// lowerField returns the name of a form field as the document writes it; the part after a dot is
// within the field's value.
func lowerField(name string) string {
	field, rest, nested := strings.Cut(name, ".")
	if nested {
		return strings.ToLower(field) + "." + rest
	}
	return strings.ToLower(field)
}
