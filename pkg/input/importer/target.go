package importer

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// target is where the routes send requests.
type target struct {
	links []document.Link
	// made is the upstream to create; nil for none.
	made *model.Upstream
	// host is the Host that an upstream from the document's server expects, if it is
	// not the host of the service.
	host     string
	warnings []string
}

func badServer(err error) error {
	return problemsError([]Problem{{Where: "servers[0].url", Message: err.Error()}})
}

// targetOf returns the upstreams of the options, or the document's first server.
func targetOf(doc *openapi3.T, o Options, svc *model.Service) (target, error) {
	var t target
	for _, name := range o.Upstreams {
		t.links = append(t.links, document.Link{Name: name})
	}
	if len(o.Upstreams) > 0 {
		return t, nil
	}
	t.links = []document.Link{{Name: o.Service}}
	u, err := firstServer(doc.Servers)
	switch {
	case err != nil:
		return t, badServer(err)
	case u == nil || u.Hostname() == "":
		return t, &Error{Message: "the document's servers name no host: name the upstream with --upstream"}
	case u.Scheme != "http" && u.Scheme != "https":
		return t, badServer(fmt.Errorf("%q is neither http nor https; name the upstream with --upstream", u))
	}
	host := strings.ToLower(u.Hostname())
	if svc.FQDN != host {
		t.host = u.Host
	}
	if !o.MakeUpstream {
		return t, nil
	}
	t.made = model.NewUpstream()
	t.made.Name, t.made.IP, t.made.Protocol, t.made.Port = o.Service, host, "http", 80
	if u.Scheme == "https" {
		t.made.Protocol, t.made.Port = "tls", 443
	}
	// Validate finds a port that is not a number.
	t.made.Port, _ = strconv.Atoi(cmp.Or(u.Port(), strconv.Itoa(t.made.Port)))
	if errs := t.made.Validate(); len(errs) > 0 {
		e := &Error{Message: "the upstream cannot be created from the document's first server; " +
			"name the upstream with --upstream"}
		for _, f := range errs {
			e.Problems = append(e.Problems, Problem{Where: f.Field, Message: f.Message})
		}
		return t, e
	}
	if svc.FQDN == host {
		t.warnings = append(t.warnings, fmt.Sprintf("service and upstream are both %s: "+
			"where clients reach this gateway by that name, "+
			"give the address of the upstream instead (--upstream)", host))
	}
	return t, nil
}

// apply sets the target of a route. Existing rewrites of the route stay.
func (t target) apply(r *model.Route) {
	if t.host != "" && r.Config.Rewrite == nil {
		r.Config.Rewrite = &model.Rewrite{Host: t.host}
	}
}
