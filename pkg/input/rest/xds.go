package rest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// resourceTypes are the type URLs that ?type= can name.
func resourceTypes() []string {
	return []string{
		inspect.ClusterType,
		inspect.EndpointType,
		inspect.ListenerType,
		inspect.RouteType,
		inspect.SecretType,
		inspect.ExtensionType,
	}
}

type resourceView struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Objects  []string        `json:"objects,omitempty"`
	Resource json.RawMessage `json:"resource"`
}

func (s *server) readResources(c *gin.Context) error {
	query, err := readQuery(c, []string{"type"})
	if err != nil {
		return err
	}
	types, err := readType(query)
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	err = s.read(c.Request.Context(), func(r store.Reader) error { return checkExist(r, proxyAt(n)) })
	if err != nil {
		return err
	}
	list, err := s.live.Snapshots.Resources(n[model.KindProxy], types)
	if err != nil {
		return err
	}
	views := make([]resourceView, len(list))
	for i, r := range list {
		views[i] = resourceView{Type: status.TypeName(r.TypeURL), Name: r.Name, Version: r.Version, Resource: r.JSON}
		for _, k := range r.Objects {
			views[i].Objects = append(views[i].Objects, k.Path())
		}
	}
	s.answer(c, s.word+"_xds", views)
	return nil
}

// readType reads the type of resources: its short name, with or without an s,
// or its URL.
func readType(query url.Values) ([]string, error) {
	if !query.Has("type") {
		return nil, nil
	}
	sent, short := query.Get("type"), make([]string, 0, len(resourceTypes()))
	for _, typeURL := range resourceTypes() {
		name := status.TypeName(typeURL)
		if slices.Contains([]string{name, name + "s", typeURL}, sent) {
			return []string{typeURL}, nil
		}
		short = append(short, name)
	}
	var errs form.Errors
	errs.Add("type", "%q is not a resource type; known types are %s, and their type URLs", sent, strings.Join(short, ", "))
	return nil, invalidFields(errs.List)
}
