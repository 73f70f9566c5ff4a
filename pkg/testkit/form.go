package testkit

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// form is the first form of a page.
type form struct {
	method string
	action *url.URL
	// values are the prefilled values, and the first button that submits the form.
	values url.Values
	// name and password are the fields for them; empty if the form has none.
	name, password string
}

func (v Visit) form() (form, error) {
	doc, err := html.Parse(strings.NewReader(v.Body))
	if err != nil {
		return form{}, fmt.Errorf("reading the page %s: %w", v.URL, err)
	}
	f := form{method: http.MethodGet, values: url.Values{}}
	var id string
	pressed := false
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch {
		case n.Data == "form" && f.action == nil:
			if f.action, err = v.URL.Parse(attribute(n, "action")); err != nil {
				return form{}, fmt.Errorf("reading the form of the page %s: %w", v.URL, err)
			}
			id = attribute(n, "id")
			if strings.EqualFold(attribute(n, "method"), "post") {
				f.method = http.MethodPost
			}
		case n.Data == "input":
			f.add(n)
		case n.Data == "button" && !pressed && (attribute(n, "form") == id || attribute(n, "form") == ""):
			pressed = true
			if name := attribute(n, "name"); name != "" {
				f.values.Set(name, attribute(n, "value"))
			}
		}
	}
	if f.action == nil {
		return form{}, fmt.Errorf("the page %s (status %d) has no form: %s", v.URL, v.Status, v.Body)
	}
	return f, nil
}

func (f *form) add(n *html.Node) {
	name := attribute(n, "name")
	switch kind := attribute(n, "type"); {
	case name == "" || kind == "checkbox":
	case kind == "password":
		f.password = name
	case (kind == "" || kind == "text" || kind == "email") && f.name == "":
		f.name = name
	default:
		f.values.Set(name, attribute(n, "value"))
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
