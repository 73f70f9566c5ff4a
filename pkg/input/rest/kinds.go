package rest

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// addKinds registers the calls that follow from the table of kinds: those of the
// objects and links of each kind, and the lists of what refers to an object.
func (s *server) addKinds() {
	for _, kind := range model.Kinds() {
		if kind.Row().Attaches() != "" {
			s.addLink(kind)
			continue
		}
		s.addObjects(kind)
		for _, user := range kind.UserKinds() {
			s.addUsers(kind, user)
		}
	}
	s.addUpload(model.KindFilter, "config", "Filter_config")
	s.addUpload(model.KindGlobalConfig, "config", "config")
	// Both take both, so that a pair can be replaced in one call.
	s.addUpload(model.KindSecret, "key", "Secret_key", "Secret_cert")
	s.addUpload(model.KindSecret, "cert", "Secret_cert", "Secret_key")
}

// pathOf is the path of an object or link of a kind, with a parameter for each name.
func pathOf(kind model.Kind) string {
	path := ""
	for _, word := range kind.Row().Path {
		if word != "" {
			path += "/" + string(word) + "/:" + string(word)
		}
	}
	return path
}

// listOf is the path of the list of the objects of a kind.
func listOf(kind model.Kind) string { return pathOf(kind.Row().Owner()) + "/" + string(kind) }

// keyOf is the key of the object or link of a kind at the end of a path.
func keyOf(kind model.Kind, n names) model.Key {
	var parts []string
	for _, word := range kind.Row().Path {
		if word != "" {
			parts = append(parts, n[word])
		}
	}
	return model.NewKey(kind, parts...)
}

// wayTo lists the objects that the path of an object or link leads through, in
// order: its owners, of a link what it attaches, and itself.
func wayTo(kind model.Kind, n names) []model.Key {
	key := keyOf(kind, n)
	if attached := key.Attached(); attached != (model.Key{}) {
		return append(key.Owner().Way(), attached, key)
	}
	return key.Way()
}

// newObject returns an object with its defaults and the names of the path.
func (s *server) newObject(kind model.Kind, n names, sent []form.Value) model.Object {
	if kind == model.KindProxy {
		return s.newProxy(cmp.Or(n[kind], form.TextOf(sent, "Name")))
	}
	return keyOf(kind, n).New()
}

// addLink registers attach, detach, the read of what is attached, and the list of
// what is attached to an object.
func (s *server) addLink(kind model.Kind) {
	attaches, path := kind.Row().Attaches(), pathOf(kind)
	s.change(http.MethodPost, path, func(c *gin.Context) error { return s.attach(c, kind) })
	s.change(http.MethodDelete, path, func(c *gin.Context) error {
		return s.deleteObject(c, kind, func(n names) model.Key { return keyOf(kind, n).Attached() })
	})
	s.get(path, func(c *gin.Context) error {
		return s.readObject(c, attaches, func(n names) []model.Key {
			return append(wayTo(kind, n), keyOf(kind, n).Attached())
		})
	})
	owner := kind.Row().Owner()
	s.addLinked(linked{
		path: pathOf(owner) + "/" + string(attaches), of: owner, kind: attaches, link: kind, target: usedByLink,
	})
}

// addUsers registers a list of what refers to an object: the owners of the links
// that attach it, or the objects that name it in a field.
func (s *server) addUsers(kind, user model.Kind) {
	l := linked{path: pathOf(kind) + "/" + string(user), of: kind, kind: user, link: user, target: model.Object.Key}
	if user.Row().Attaches() == kind {
		l.kind = user.Row().Owner()
		l.path = pathOf(kind) + "/" + string(l.kind)
		l.target = func(link model.Object) model.Key { return link.Key().Owner() }
	}
	namers := slices.Contains(kind.UserKinds(), l.kind)
	switch {
	case l.kind == user && slices.ContainsFunc(kind.UserKinds(),
		func(link model.Kind) bool { return link.Row().Owner() == user && link.Row().Attaches() == kind }):
		return // it follows in the list of those that it is attached to, which has this path
	case l.kind != user && namers:
		l.also = &linked{path: l.path, of: kind, kind: l.kind, link: l.kind, target: model.Object.Key, unlinked: user}
	}
	s.addLinked(l)
}

// usedByLink is the object that a link attaches.
func usedByLink(l model.Object) model.Key { return l.Key().Attached() }

// proxyAt is the proxy that a path leads through.
func proxyAt(n names) []model.Key { return wayTo(model.KindProxy, n) }
