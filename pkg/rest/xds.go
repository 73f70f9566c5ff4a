package rest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// Snapshots tells what the Envoys should have.
type Snapshots interface {
	// Revision is the newest revision that was built; 0 before the first.
	Revision() int64
	// Wanted is the revision in which what a proxy's Envoys should have became
	// what it is; 0 where there is nothing yet.
	Wanted(proxy string) int64
	// Resources lists what a proxy's Envoys should have, by type and name.
	// Nothing in it is secret. Types restricts it to these type URLs; empty
	// means all.
	Resources(proxy string, types []string) ([]Resource, error)
}

// Resource is one Envoy resource.
type Resource struct {
	// TypeURL is its type as on the wire.
	TypeURL string
	Name    string
	// Version is that of its content.
	Version string
	// JSON is Envoy's own JSON.
	JSON json.RawMessage
}

// noSnapshots is an API without Envoys.
type noSnapshots struct{}

func (noSnapshots) Revision() int64                                { return 0 }
func (noSnapshots) Wanted(string) int64                            { return 0 }
func (noSnapshots) Resources(string, []string) ([]Resource, error) { return nil, nil }

// resourceTypes are the type URLs that ?type= can name.
func resourceTypes() []string {
	return []string{
		clusterType,
		endpointType,
		listenerType,
		routeType,
		"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
		"type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
	}
}

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

type resourceView struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Version  string          `json:"version"`
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
	err = s.read(c.Request.Context(), func(r store.Reader) error { return exist(r, proxyAt(n)) })
	if err != nil {
		return err
	}
	list, err := s.snapshots.Resources(n[model.KindProxy], types)
	if err != nil {
		return err
	}
	views := make([]resourceView, len(list))
	for i, r := range list {
		views[i] = resourceView{status.TypeName(r.TypeURL), r.Name, r.Version, r.JSON}
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
	errs.Add("type", "%q is not a type of resources; known are %s, and their type URLs", sent, strings.Join(short, ", "))
	return nil, invalidFields(errs.List)
}
