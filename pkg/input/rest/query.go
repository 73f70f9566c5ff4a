package rest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// cursorVersion begins every cursor, so that a later form can be told from
	// this one.
	cursorVersion = "v1"
)

// page is what part of a list was asked for.
type page struct {
	// after is the ID behind which the page starts.
	after int64
	limit int
	// prefix restricts the list to names that start with it, tag to objects
	// that carry it.
	prefix, tag string
	// status asks for the status of each object.
	status bool
}

func listParameters() []string { return []string{"limit", "after", "name", "tag", "status"} }

// endParameter restricts a list of secrets to those whose certificate ends before.
const endParameter = "expires_before"

// readEnd reads the time before which certificates end: a date or a time of RFC 3339,
// or days from now such as 30d.
func readEnd(text string, now time.Time) (model.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return model.At(now.AddDate(0, 0, int(n))), nil
		}
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return model.At(at), nil
		}
	}
	return model.Time{}, invalidFields([]model.FieldError{{
		Field: endParameter, Message: fmt.Sprintf("%q is not a date such as 2026-12-24, "+
			"a time such as 2026-12-24T00:00:00Z, or a number of days such as 30d", text),
	}})
}

// readPage reads the query of a list of kind, which may have parameters of its own.
func readPage(c *gin.Context, kind model.Kind, own ...string) (page, url.Values, error) {
	query, err := readQuery(c, append(listParameters(), own...))
	if err != nil {
		return page{}, nil, err
	}
	p, err := pageOf(query, kind)
	return p, query, err
}

func pageOf(query url.Values, kind model.Kind) (page, error) {
	p := page{limit: defaultLimit, prefix: query.Get("name"), tag: query.Get("tag")}
	var errs form.Errors
	if query.Has("limit") {
		n, err := strconv.Atoi(query.Get("limit"))
		if err != nil || n < 1 || n > maxLimit {
			errs.Add("limit", "%q is not a whole number between 1 and %d", query.Get("limit"), maxLimit)
		}
		p.limit = n
	}
	if query.Has("after") {
		after, err := readCursor(kind, query.Get("after"))
		if err != nil {
			errs.Add("after", "%s", err)
		}
		p.after = after
	}
	if err := invalidFields(errs.List); err != nil {
		return p, err
	}
	var err error
	p.status, err = isTrue(query, "status")
	return p, err
}

// readQuery refuses parameters that are not known, come twice (unless they are
// repeatable) or hold no text. A call that ignored dry_run, for example,
// would change something.
func readQuery(c *gin.Context, known []string, repeatable ...string) (url.Values, error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: "the query cannot be read: " + err.Error()}
	}
	var errs form.Errors
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			errs.Add(name, "%s", unknownParameter(name, known))
		case len(values) > 1 && !slices.Contains(repeatable, name):
			errs.Add(name, "is sent more than once")
		default:
			for _, v := range values {
				if err := form.CheckText(v); err != nil {
					errs.Add(name, "%s", err)
				}
			}
		}
	}
	slices.SortFunc(errs.List, func(a, b model.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return query, invalidFields(errs.List)
}

func unknownParameter(name string, known []string) string {
	if len(known) == 0 {
		return "unknown query parameter; this call takes none"
	}
	if best, near := suggest.Nearest(name, known); near {
		return "unknown query parameter; did you mean " + best + "?"
	}
	return "unknown query parameter; known parameters are " + strings.Join(known, ", ")
}

// writeCursor and readCursor hide the ID in a text that means nothing to a
// client and holds for lists of this kind only.
func writeCursor(kind model.Kind, id int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %s %d", cursorVersion, kind, id))
}

func readCursor(kind model.Kind, cursor string) (int64, error) {
	wrong := fmt.Errorf("%q is not a cursor of this list; use the cursor of a Link header", cursor)
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, wrong
	}
	digits, ok := strings.CutPrefix(string(b), cursorVersion+" "+string(kind)+" ")
	id, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || id < 1 || writeCursor(kind, id) != cursor {
		return 0, wrong
	}
	return id, nil
}

// linkNext names the next page and keeps the other parameters (RFC 8288).
func linkNext(c *gin.Context, query url.Values, kind model.Kind, last int64) {
	query.Set("after", writeCursor(kind, last))
	c.Header("Link", "<"+requestPath(c)+"?"+query.Encode()+`>; rel="next"`)
}

// names are the names in a path, by the word before them.
type names map[model.Kind]string

// pathNames decodes the names in the path. The error is NotFound, about the
// first name that nothing can have.
func pathNames(c *gin.Context) (names, error) {
	n := names{}
	for _, p := range c.Params {
		name, err := url.PathUnescape(p.Value)
		if err != nil || !isPossibleName(name) {
			return nil, &model.Error{
				Kind: model.NotFound, Path: requestPath(c),
				Message: fmt.Sprintf("%s %q does not exist", p.Key, name),
				Hint:    "a name has 1 to 253 characters of A-Z a-z 0-9 . _ -",
			}
		}
		n[model.Kind(p.Key)] = name
	}
	return n, nil
}

// isTrue reads a parameter that is true or false; without it, it is false.
func isTrue(query url.Values, name string) (bool, error) {
	switch query.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		if !query.Has(name) {
			return false, nil
		}
	}
	return false, invalidFields([]model.FieldError{{
		Field: name, Message: fmt.Sprintf("%q is neither true nor false", query.Get(name)),
	}})
}

// isPossibleName reports whether an object may have this name. Names of routes have
// the plain rule of rest-api.md ("Names"), without reserved words.
func isPossibleName(name string) bool {
	return len((&model.Route{Name: name, Prefix: "/"}).Validate()) == 0
}

// noQuery is readQuery for a call without parameters.
func noQuery(c *gin.Context) error {
	_, err := readQuery(c, nil)
	return err
}
