package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// Tag is on the routes that an import created.
const Tag = "import:openapi"

// Options say what an import creates.
type Options struct {
	// Service is the name of the service.
	Service string
	// FQDN is the host of the service. If it is empty, an existing service keeps its
	// host, and a new service gets the host of the document's first server.
	FQDN string
	// Upstreams are the names of the upstreams of every route. None means one with the
	// name of the service.
	Upstreams []string
	// MakeUpstream creates that upstream, from the first server of the document.
	MakeUpstream bool
	// NoPreflight leaves out the route that allows OPTIONS.
	NoPreflight bool
}

// Stored is what the server has of the service, as GET returns it. The zero value means
// that there is no such service.
type Stored struct {
	Service json.RawMessage
	Routes  []json.RawMessage
}

// Plan is what an import does.
type Plan struct {
	// Document is the configuration document that creates the service and its routes.
	Document []byte
	// Gone are the names of routes that an earlier import created and the description
	// no longer has; sorted.
	Gone []string
	// Warnings lists what was left out.
	Warnings []string
}

// Import plans the import of a document that Read has checked. It sets the path, the
// methods and the upstreams of an existing route, and keeps its other fields. Its error
// is an *Error, except for answers of the server that cannot be read.
func Import(d *Description, o Options, stored Stored) (Plan, error) {
	plan, problems, err := d.plan(o, stored)
	if len(problems) > 0 && !d.located && d.again != nil {
		located, err := d.again()
		if err != nil {
			return Plan{}, err
		}
		return Import(located, o, stored)
	}
	if err == nil && len(problems) > 0 && !d.lenient {
		err = problemsError(problems)
	}
	if err != nil {
		return Plan{}, err
	}
	sortByLine(problems)
	for _, p := range problems {
		plan.Warnings = append(plan.Warnings, "left out: "+p.String())
	}
	plan.Warnings = append(d.warnings, plan.Warnings...)
	return plan, nil
}

// plan leaves out whatever has a problem.
func (d *Description) plan(o Options, stored Stored) (plan Plan, problems []Problem, err error) {
	list, hidden, problems := operations(d.doc, !o.NoPreflight)
	if len(list) == 0 && (len(problems) == 0 || d.lenient) {
		return plan, problems, &Error{Message: "the document describes no operation that could become a route; see its paths"}
	}
	svc, err := serviceOf(d.doc, o, stored)
	if err != nil {
		return plan, problems, err
	}
	old, err := storedRoutes(stored)
	if err != nil {
		return plan, problems, err
	}
	result := &document.Document{Items: []*document.Item{{Object: svc}}}
	target, err := targetOf(d.doc, o, svc)
	if err != nil {
		return plan, problems, err
	}
	if target.made != nil {
		result.Items = append([]*document.Item{{Object: target.made}}, result.Items...)
	}
	kept := map[string]bool{}
	for _, op := range list {
		kept[op.name] = true
		route, bad := routeOf(op, o.Service, old)
		if problems = append(problems, bad...); len(bad) > 0 {
			continue
		}
		target.apply(route)
		result.Items = append(result.Items, &document.Item{
			Object: route, Lists: map[model.Kind][]document.Link{model.KindRouteUpstream: target.links},
		})
	}
	for _, name := range hidden {
		plan.Warnings = append(plan.Warnings, name+" is left out, because the document marks it with "+internal)
	}
	plan.Warnings = append(plan.Warnings, target.warnings...)
	for name, r := range old {
		if r.Tags.Has(Tag) && !kept[name] {
			plan.Gone = append(plan.Gone, name)
		}
	}
	slices.Sort(plan.Gone)
	var out bytes.Buffer
	if err := document.Encode(&out, result, false); err != nil {
		return plan, problems, fmt.Errorf("writing the configuration document: %w", err)
	}
	plan.Document = out.Bytes()
	return plan, problems, nil
}

// serviceOf returns the service after the import.
func serviceOf(doc *openapi3.T, o Options, stored Stored) (*model.Service, error) {
	svc := model.NewService()
	if len(stored.Service) > 0 {
		if err := json.Unmarshal(stored.Service, svc); err != nil {
			return nil, fmt.Errorf("reading the service %s of the server: %w", o.Service, err)
		}
	}
	svc.Name = o.Service
	switch {
	case o.FQDN != "":
		svc.FQDN = o.FQDN
	case svc.FQDN == "":
		_, host, err := basePath(doc.Servers)
		if err != nil {
			return nil, badServer(err)
		}
		if host == "" {
			return nil, &Error{Message: "the document's servers name no host: name the host of the service with --fqdn, " +
				"such as --fqdn api.example.com, or --fqdn '*' for any"}
		}
		svc.FQDN = host
	}
	if errs := svc.Validate(); len(errs) > 0 {
		e := &Error{Message: "the service cannot be created"}
		for _, f := range errs {
			e.Problems = append(e.Problems, Problem{Where: f.Field, Message: f.Message})
		}
		return nil, e
	}
	return svc, nil
}

// storedRoutes returns the routes of the server by name.
func storedRoutes(stored Stored) (map[string]*model.Route, error) {
	routes := map[string]*model.Route{}
	for _, raw := range stored.Routes {
		r := &model.Route{}
		if err := json.Unmarshal(raw, r); err != nil {
			return nil, fmt.Errorf("reading a route of the server: %w", err)
		}
		routes[r.Name] = r
	}
	return routes, nil
}

// routeOf returns the route of one operation.
func routeOf(op *operation, service string, old map[string]*model.Route) (*model.Route, []Problem) {
	r := &model.Route{Service: service, Name: op.name}
	if was := old[op.name]; was != nil {
		if !was.Tags.Has(Tag) {
			return r, []Problem{{op.line, op.String(), fmt.Sprintf(
				"the service has a route %q that no import made; delete it, or give it the tag %s to have it replaced", op.name,
				Tag)}}
		}
		r.Config, r.Tags = was.Config, was.Tags
	}
	r.Prefix, r.Config.Match, r.Config.Methods = op.prefix(), "exact", op.methods
	switch {
	case op.template.parameters() > 0:
		r.Config.Match = "regex"
	case op.below:
		r.Config.Match = "prefix"
	}
	r.Tags = model.NewTags(append(slices.Clone(r.Tags), Tag))
	var problems []Problem
	for _, f := range r.Validate() {
		problems = append(problems, Problem{op.line, op.String(), "as a route: " + f.Field + ": " + f.Message})
	}
	return r, problems
}
