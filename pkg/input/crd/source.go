package crd

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// source is a document, indexed by key.
type source struct {
	objects map[model.Key]model.Object
	// attached has the names of the objects that are attached to an object, sorted.
	attached map[model.Key]map[model.Kind][]string
	// proxies are the proxies of a service or global config, sorted.
	proxies map[model.Key][]string
}

// index reads a document. A name in a list that the document does not contain is a
// problem.
func index(doc *document.Document, p *problems) source {
	s := source{
		objects: map[model.Key]model.Object{}, attached: map[model.Key]map[model.Kind][]string{},
		proxies: map[model.Key][]string{},
	}
	for _, item := range doc.Items {
		s.objects[item.Object.Key()] = item.Object
	}
	for _, item := range doc.Items {
		owner := item.Object.Key()
		for _, kind := range model.Kinds() {
			for _, link := range item.Lists[kind] {
				attached, proxy := model.NewKey(kind.Row().Attaches(), link.Name), owner.Name()
				if kind == model.KindProxyService && owner.Kind == model.KindService { // the service names its proxies
					attached, proxy = owner, link.Name
				}
				key := attached
				if key == owner {
					key = model.ProxyKey(proxy)
				}
				if s.objects[key] == nil {
					p.add("%s names the %s %q, which the document does not have", owner.Path(), key.Kind, key.Name())
					continue
				}
				s.attach(owner, kind, attached, proxy)
			}
		}
		if namer, ok := item.Object.(model.Namer); ok {
			for _, key := range namer.Names() {
				if s.objects[key] == nil {
					p.add("%s names the %s %q, which the document does not have", owner.Path(), key.Kind, key.Name())
				}
			}
		}
	}
	return s
}

func (s *source) attach(owner model.Key, kind model.Kind, attached model.Key, proxy string) {
	if kind == model.KindProxyService || kind == model.KindProxyGlobalConfig {
		s.proxies[attached] = sortedWith(s.proxies[attached], proxy)
		return
	}
	if s.attached[owner] == nil {
		s.attached[owner] = map[model.Kind][]string{}
	}
	s.attached[owner][kind] = sortedWith(s.attached[owner][kind], attached.Name())
}

// sortedWith adds a word to a sorted list, once.
func sortedWith(list []string, word string) []string {
	at, found := slices.BinarySearch(list, word)
	if found {
		return list
	}
	return slices.Insert(list, at, word)
}

// keys returns the keys of the objects of a kind, sorted; for routes, those of one
// service.
func (s *source) keys(kind model.Kind, service string) []model.Key {
	var keys []model.Key
	for key := range s.objects {
		if key.Kind == kind && (service == "" || key.Part(model.KindService) == service) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b model.Key) int { return strings.Compare(a.Text(), b.Text()) })
	return keys
}
