// Package errorpage is route_filter_errorpage: pages in place of answers with an error.
//
// Invariants: the script is the gateway's own and the same on every listener, and what operators write is data for it.
// So no listener changes with the pages, and Envoy compiles no script when routes change.
package errorpage

import (
	_ "embed"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name                  = seam.LuaFilter + "/errorpage"
	key  seam.Key[[]Page] = "errorPages"
)

//go:embed page.lua
var script string

// Page is what clients get in place of answers with its statuses.
type Page struct {
	// Statuses are those of no other page.
	Statuses []int `json:"statuses"`
	// HTML, JSON and Text are its forms; empty means that it lacks one.
	HTML string `json:"html,omitempty"`
	JSON string `json:"json,omitempty"`
	Text string `json:"text,omitempty"`
	// Status is the one that the client gets; 0 means that of the answer.
	Status int `json:"status,omitempty"`
}

// Filter returns the filter. A route's pages replace its service's.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterErrorPage, Config: seam.Adds(key, replace),
		Name: name, Listener: replacer, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages), Describe: describe, Replace: explain,
	}
}

func replace(_ []Page, f *model.ErrorPageFilter, _ seam.Place) ([]Page, error) {
	var out []Page
	for i, p := range f.Pages {
		if own := f.StatusesOf(i); len(own) > 0 {
			out = append(out, Page{Statuses: own, HTML: p.HTML, JSON: p.JSON, Text: p.Text, Status: p.Status})
		}
	}
	return out, nil
}

// replacer is the script, without pages. The route of a request stays the one whose filters it has passed.
func replacer(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &luav3.Lua{
		DefaultSourceCode: seam.Inline(script), ClearRouteCache: wrapperspb.Bool(false),
	}}}
}

// messages has the data of the script: for each status the number of its page. The keys of a page begin with its
// number: "0:html" is a form of it, "0 html" the form for clients that accept HTML, "0 status" the status for the
// client, and "0 vary" is there if clients get different forms.
func messages(pages []Page) ([]seam.Message, error) {
	fields := map[string]*structpb.Value{}
	set := func(key, value string) { fields[key] = structpb.NewStringValue(value) }
	for i, p := range pages {
		number := strconv.Itoa(i)
		for _, status := range p.Statuses {
			set(strconv.Itoa(status), number)
		}
		forms := p.forms()
		for form, text := range forms {
			set(number+":"+form, text)
		}
		for _, wanted := range []string{"text", "html", "json"} {
			set(number+" "+wanted, p.formFor(wanted))
		}
		if len(forms) > 1 {
			set(number+" vary", "Accept")
		}
		if p.Status > 0 {
			set(number+" status", strconv.Itoa(p.Status))
		}
	}
	return []seam.Message{{Name: name, Config: &luav3.LuaPerRoute{FilterContext: &structpb.Struct{Fields: fields}}}}, nil
}

// forms returns the forms of a page by name.
func (p Page) forms() map[string]string {
	out := map[string]string{"html": p.HTML, "json": p.JSON, "text": p.Text}
	for form, text := range out {
		if text == "" {
			delete(out, form)
		}
	}
	return out
}

// formFor returns the form for clients that want one.
func (p Page) formFor(wanted string) string {
	forms := p.forms()
	for _, form := range []string{wanted, "text", "html", "json"} {
		if forms[form] != "" {
			return form
		}
	}
	return wanted
}

func describe(r seam.Request) (string, error) {
	message, err := seam.MessageOf(name, r, &luav3.LuaPerRoute{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("replaces the answer if its status is %s", statusesOf(message.GetFilterContext())), nil
}

// explain does what the script does.
func explain(r seam.Request, status int) (seam.Replacement, error) {
	message, err := seam.MessageOf(name, r, &luav3.LuaPerRoute{})
	if err != nil {
		return seam.Replacement{}, err
	}
	pages := message.GetFilterContext().GetFields()
	page := pages[strconv.Itoa(status)].GetStringValue()
	if page == "" {
		return seam.Replacement{}, nil
	}
	out := seam.Replacement{Status: status}
	if text := pages[page+" status"].GetStringValue(); text != "" {
		if out.Status, err = strconv.Atoi(text); err != nil {
			return out, fmt.Errorf("explaining filter %q: %w", name, err)
		}
	}
	form := pages[page+" "+wantedForm(r.Header("accept"))].GetStringValue()
	out.Message = fmt.Sprintf("replaces the answer %d: the client gets %d with a page (%s)", status, out.Status, form)
	if r.Header(seam.Method) != http.MethodHead {
		out.Body = strings.ReplaceAll(pages[page+":"+form].GetStringValue(), model.StatusOfPage, strconv.Itoa(out.Status))
	}
	return out, nil
}

// wantedForm is the form that a client asks for.
func wantedForm(accept string) string {
	switch {
	case strings.Contains(accept, "text/html"):
		return "html"
	case strings.Contains(accept, "application/json"), strings.Contains(accept, "application/problem+json"):
		return "json"
	default:
		return "text"
	}
}

// statusesOf lists the statuses with a page, as ranges.
func statusesOf(pages *structpb.Struct) string {
	var ranges []string
	for low := 400; low < 600; low++ {
		high := low
		for pages.GetFields()[strconv.Itoa(high)] != nil {
			high++
		}
		switch high - low {
		case 0:
			continue
		case 1:
			ranges = append(ranges, strconv.Itoa(low))
		default:
			ranges = append(ranges, fmt.Sprintf("%d-%d", low, high-1))
		}
		low = high
	}
	return strings.Join(ranges, ", ")
}
