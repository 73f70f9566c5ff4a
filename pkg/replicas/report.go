package replicas

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
)

// Report is what a replica tells the others of itself. It is immutable.
type Report struct {
	// Replica is its name, which no other process has or will have.
	Replica string    `json:"replica"`
	Started time.Time `json:"started"`
	// Built is the newest revision that its Envoys receive, and BuiltID the ID of
	// that revision (model.Mark). Where each replica counts revisions of its
	// own, as with Kubernetes, they say nothing to others: Seen does.
	Built   int64  `json:"built"`
	BuiltID string `json:"built_id,omitempty"`
	// Seen says up to which resourceVersion of each kind the Envoys receive what
	// Kubernetes says; nil without Kubernetes.
	Seen map[string]int64 `json:"seen,omitempty"`
	// Held says why its Envoys are not answered; empty means that they are.
	Held string `json:"held,omitempty"`
	// Envoys are those connected to it, the longest connected first.
	Envoys []Envoy `json:"envoys,omitempty"`
	// More counts, by proxy, the Envoys for which there was no room, and MoreLagging
	// those of them that are not current.
	More        map[string]int `json:"more,omitempty"`
	MoreLagging map[string]int `json:"more_lagging,omitempty"`
	Engines     []Engine       `json:"engines,omitempty"`
	// Conditions are those that only this replica knows, such as logins that fail.
	Conditions []Condition `json:"conditions,omitempty"`
	// Events are the last that the others are told of, numbered without gaps.
	Events []Event `json:"events,omitempty"`
}

// Position says what the Envoys of a replica receive: Report.Built, BuiltID and Seen. An
// empty BuiltID means any.
type Position struct {
	Built   int64
	BuiltID string
	Seen    map[string]int64
}

// Position returns that of the replica.
func (r *Report) Position() Position { return Position{r.Built, r.BuiltID, r.Seen} }

// Covers reports whether p has everything that q has. A revision that is newer than
// q's is believed to come after it.
func (p Position) Covers(q Position) bool {
	if p.Seen == nil && q.Seen == nil {
		return p.Built > q.Built || p.Built == q.Built && (p.BuiltID == q.BuiltID || q.BuiltID == "")
	}
	for kind, version := range q.Seen {
		if p.Seen[kind] < version {
			return false
		}
	}
	return true
}

// Envoy is one connected Envoy.
type Envoy struct {
	Proxy     string    `json:"p"`
	Address   string    `json:"a"`
	Version   string    `json:"v,omitempty"`
	Connected time.Time `json:"c"`
	Identity  string    `json:"i,omitempty"`
	// Applied is the revision that it has in full. Of one that is Current it is the
	// one in which what it should have became what it is.
	Applied int64 `json:"r,omitempty"`
	// Current says that it has all that it should have as of the report's Built.
	Current bool `json:"ok,omitempty"`
	// Answered says that it has answered all that it was sent of listeners and
	// routes. It is not set for one that is Current.
	Answered bool `json:"answered,omitempty"`
	// Seen says up to which resourceVersion of each kind Applied has what Kubernetes
	// says. It is not set for one that is Current.
	Seen map[string]int64 `json:"seen,omitempty"`
	// Waiting, Refused and Types tell of one that is not Current.
	Waiting []status.Wait             `json:"waiting,omitempty"`
	Refused []status.Refusal          `json:"refused,omitempty"`
	Types   map[string]status.Answers `json:"types,omitempty"`
	// Cut says that there was no room for all of these.
	Cut bool `json:"cut,omitempty"`

	// first is when another replica heard of it first, by the clock of that one; zero
	// if it was there when the other was.
	first time.Time
}

// Engine is one connected rate-limit engine.
type Engine struct {
	Address   string                    `json:"a"`
	Connected time.Time                 `json:"c"`
	Identity  string                    `json:"i,omitempty"`
	Types     map[string]status.Answers `json:"types,omitempty"`
}

// Condition is a model.Condition with its key.
type Condition struct {
	Key     model.Key `json:"key"`
	Code    string    `json:"code"`
	Message string    `json:"message"`
	Proxies []string  `json:"proxies,omitempty"`
}

// Event is an event of an Envoy. Seq counts the events of its replica.
type Event struct {
	Seq int64 `json:"seq"`
	status.Event
}

// What bounds a report. Without these, 1,000 Envoys that are current take some
// 30 kB.
const (
	// maxEnvoys and maxEngines are how many are told of.
	maxEnvoys, maxEngines = 5000, 100
	// maxDetails bounds what is told of Envoys that are not current, all together,
	// in bytes of JSON.
	maxDetails = 128 << 10
	// maxListed bounds the waits and refusals that are told of one Envoy, and the
	// names in each; maxText the text of each.
	maxListed, maxText = 10, 500
	// maxConditions is how many are told of.
	maxConditions = 100
	// maxReport bounds what is read of a report, in bytes of JSON.
	maxReport = 16 << 20
)

const (
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Observe returns what a registry knows of the Envoys. built was read before, and
// wanted tells in which revision what a proxy's Envoys should have became what it
// is; 0 means that there is nothing yet.
func Observe(registry *status.Registry, built model.Mark, wanted func(proxy string) int64) Report {
	r := Report{Built: built.Revision, BuiltID: built.ID}
	room := maxDetails
	for _, e := range registry.Envoys() {
		v := observeEnvoy(e, wanted(e.Proxy), &room)
		if len(r.Envoys) < maxEnvoys {
			r.Envoys = append(r.Envoys, v)
			continue
		}
		if r.More == nil {
			r.More, r.MoreLagging = map[string]int{}, map[string]int{}
		}
		r.More[e.Proxy]++
		if !v.Current {
			r.MoreLagging[e.Proxy]++
		}
	}
	for _, e := range registry.Engines() {
		if len(r.Engines) < maxEngines {
			r.Engines = append(r.Engines, Engine{e.Address, e.Connected, e.Identity, shortTypes(e.Types)})
		}
	}
	return r
}

func observeEnvoy(e status.Envoy, wanted int64, room *int) Envoy {
	v := Envoy{
		Proxy: e.Proxy, Address: e.Address, Version: e.Version, Connected: e.Connected.UTC().Truncate(time.Microsecond),
		Identity: e.Identity, Applied: e.Applied,
	}
	if v.Current = wanted > 0 && e.Applied >= wanted && len(e.Refused) == 0; v.Current {
		return v
	}
	v.Answered = e.HasAnswered(listenerType, routeType)
	full := v
	full.Types = shortTypes(e.Types)
	for _, w := range e.Waiting[:min(maxListed, len(e.Waiting))] {
		w.Clusters, w.Secrets, w.Providers = shortAwaited(w.Clusters), shortAwaited(w.Secrets), shortAwaited(w.Providers)
		full.Waiting = append(full.Waiting, w)
	}
	for _, f := range e.Refused[:min(maxListed, len(e.Refused))] {
		f.Text, f.Objects = shorten(f.Text), f.Objects[:min(maxListed, len(f.Objects))]
		full.Refused = append(full.Refused, f)
	}
	full.Cut = len(e.Waiting) > maxListed || len(e.Refused) > maxListed
	text, err := json.Marshal(full)
	if err != nil || len(text) > *room {
		v.Cut = true
		return v
	}
	*room -= len(text)
	return full
}

func shortAwaited(list []status.Awaited) []status.Awaited {
	var short []status.Awaited
	for _, a := range list[:min(maxListed, len(list))] {
		a.Objects = a.Objects[:min(maxListed, len(a.Objects))]
		short = append(short, a)
	}
	return short
}

func shortTypes(types map[string]status.Answers) map[string]status.Answers {
	short := make(map[string]status.Answers, len(types))
	for typeURL, t := range types {
		short[typeURL] = status.Answers{Sent: shortAnswer(t.Sent), Acked: shortAnswer(t.Acked), Rejected: shortAnswer(t.Rejected)}
	}
	return short
}

// shortAnswer leaves the count of the resources.
func shortAnswer(a status.Answer) status.Answer {
	a.More += len(a.Resources)
	a.Resources, a.Text = nil, shorten(a.Text)
	return a
}

func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// WithConditions returns the report with what only this replica knows of objects.
func (r Report) WithConditions(list []model.Condition) Report {
	r.Conditions = nil
	for _, c := range list[:min(maxConditions, len(list))] {
		r.Conditions = append(r.Conditions, Condition{c.Key, c.Code, shorten(c.Message), c.Proxies})
	}
	return r
}

// WithSeen returns the report with what Kubernetes had said in revisions. at returns
// that of a revision; nil if it is not known.
func (r Report) WithSeen(at func(revision int64) map[string]int64) Report {
	r.Seen = at(r.Built)
	r.Envoys = slices.Clone(r.Envoys)
	for i := range r.Envoys {
		if e := &r.Envoys[i]; !e.Current && e.Applied > 0 {
			e.Seen = at(e.Applied)
		}
	}
	return r
}

// Status is an Envoy as a registry would have it.
func (e Envoy) Status() status.Envoy {
	return status.Envoy{
		Proxy: e.Proxy, Address: e.Address, Version: e.Version, Connected: e.Connected, Identity: e.Identity,
		Progress: status.Progress{Applied: e.Applied, Waiting: e.Waiting, Refused: e.Refused}, Types: e.Types,
	}
}

// Has reports whether Envoys of a proxy are connected.
func (r *Report) Has(proxy string) bool {
	return r.More[proxy] > 0 || slices.ContainsFunc(r.Envoys, func(e Envoy) bool { return e.Proxy == proxy })
}

// encode writes compressed JSON.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a post: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("encoding a post: %w", err)
	}
	return b.Bytes(), nil
}

// decode reads what encode wrote, also what a newer program wrote: fields that are
// not known say nothing.
func decode(b []byte, to any) error {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("decoding a post: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(z, maxReport)).Decode(to); err != nil {
		return fmt.Errorf("decoding a post: %w", err)
	}
	return nil
}
