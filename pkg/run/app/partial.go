package app

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// assumeNamed adds to a document what it names and does not have, as a server would have it, and says so in a warning for
// each. What cannot be made up, because its type is not known, is taken out of the lists.
func assumeNamed(doc *document.Document) (warnings []Finding) {
	known := map[model.Key]bool{}
	for _, item := range doc.Items {
		known[item.Object.Key()] = true
	}
	assume := func(key model.Key, line int) bool {
		if known[key] {
			return true
		}
		warnings = append(warnings, Finding{Line: line, Message: fmt.Sprintf("%s %q is not in the document: taken for good", key.Kind, key.Text())})
		obj := standInFor(key, len(known))
		if obj == nil {
			return false
		}
		known[key] = true
		doc.Items = append(doc.Items, &document.Item{Object: obj, Line: line, At: key.Path()})
		return true
	}
	for _, item := range slices.Clone(doc.Items) {
		if namer, is := item.Object.(model.Namer); is {
			for _, key := range namer.Names() {
				assume(key, item.Line)
			}
		}
		for kind, links := range item.Lists {
			item.Lists[kind] = slices.DeleteFunc(slices.Clone(links), func(l document.Link) bool {
				return !assume(otherEnd(kind, item.Object.Key().Kind, l.Name), l.Line)
			})
		}
	}
	kinds := model.Kinds()
	slices.SortStableFunc(doc.Items, func(a, b *document.Item) int {
		return cmp.Compare(slices.Index(kinds, a.Object.Key().Kind), slices.Index(kinds, b.Object.Key().Kind))
	})
	return warnings
}

// otherEnd is what an object of a kind names in a list of links.
func otherEnd(link, from model.Kind, name string) model.Key {
	if link.Row().Attaches() == from { // the list of proxies of a service
		return model.NewKey(link.Row().Owner(), name)
	}
	return model.NewKey(link.Row().Attaches(), name)
}

// standInFor returns an object that works, or nil if nobody knows what it is. n is another number for each.
func standInFor(key model.Key, n int) model.Object {
	switch obj := key.New().(type) {
	case *model.Upstream:
		obj.IP, obj.Port = "192.0.2.1", 80 // an address of documentation
		return obj
	case *model.Service:
		obj.FQDN = fmt.Sprintf("stand-in-%d.invalid", n)
		return obj
	case *model.Secret, *model.KeySet, *model.Proxy:
		return obj
	}
	return nil
}
