package document

import (
	"fmt"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Version is the version of the document's shape that this package knows.
const Version = 1

// maxErrors bounds the errors that are reported for one document.
const maxErrors = 100

// Document is the desired configuration.
type Document struct {
	// Items are the objects in order of model.Kinds, within a kind as they
	// were written.
	Items []*Item
}

// Item is one object of a document with the names of what is attached to it.
type Item struct {
	Object model.Object
	// Lists holds, by the kind of the link, what is to be attached. A kind
	// that is not there says nothing; an empty list detaches everything.
	Lists map[model.Kind][]Link
	// absent has the bit of each field, by its place in form.Fields, that the
	// text does not have; Object has its default there.
	absent uint64
	// Line is where the object begins in the text; 0 means that it comes from
	// none.
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

// sections are those at the top, in the order of writing.
func sections() []section {
	return []section{
		{"upstreams", model.KindUpstream}, {"secrets", model.KindSecret}, {"keysets", model.KindKeySet}, {"filters", model.KindFilter},
		{"globalconfigs", model.KindGlobalConfig}, {"services", model.KindService}, {"proxies", model.KindProxy},
	}
}

// partsOf is the list of objects that an object of kind has inside of it; none has the empty kind.
func partsOf(kind model.Kind) section {
	switch kind {
	case model.KindService:
		return section{"routes", model.KindRoute}
	case model.KindKeySet:
		return section{"keys", model.KindAPIKey}
	}
	return section{}
}

// isPart reports whether objects of kind are inside of others.
func isPart(kind model.Kind) bool {
	row := kind.Row()
	return row.Owner() != "" && row.Attaches() == ""
}

// listsOf are the lists of names that an object of kind has, in the order of
// writing.
func listsOf(kind model.Kind) []section {
	switch kind {
	case model.KindService:
		return []section{{"filters", model.KindServiceFilter}, {"secrets", model.KindServiceSecret}, {"proxies", model.KindProxyService}}
	case model.KindRoute:
		return []section{{"upstreams", model.KindRouteUpstream}, {"filters", model.KindRouteFilter}}
	case model.KindProxy:
		return []section{{"services", model.KindProxyService}, {"globalconfigs", model.KindProxyGlobalConfig}}
	}
	return nil
}

// linkKey is the key of the link of a kind from owner to what is called name.
func linkKey(kind model.Kind, owner model.Key, name string) model.Key {
	if kind.Row().Attaches() == owner.Kind { // the one link that both ends may name
		return model.NewKey(kind, name, owner.Name())
	}
	return model.NewKey(kind, owner.Text(), name)
}

// isAbsent says whether the text does not have the field of that place.
func (item *Item) isAbsent(field int) bool { return item.absent&(1<<field) != 0 }

// fieldKey is the key of a field in the document.
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

// lowerField writes the name of a form field as the document does; what
// follows a dot is within the field's value.
func lowerField(name string) string {
	field, rest, nested := strings.Cut(name, ".")
	if nested {
		return strings.ToLower(field) + "." + rest
	}
	return strings.ToLower(field)
}
