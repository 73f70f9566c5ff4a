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

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Report is what a replica reports to the others about itself. It is immutable.
type Report struct {
	// Replica is its name, which no other process has or will ever have.
	Replica string    `json:"replica"`
	Started time.Time `json:"started"`
	// Built is the newest revision that its Envoys receive, and BuiltID the ID of that
	// revision (model.Mark). If each replica counts revisions of its own, as with
	// Kubernetes, they mean nothing to others; Seen does.
	Built   int64  `json:"built"`
	BuiltID string `json:"built_id,omitempty"`
	// Seen is, for each kind, the resourceVersion up to which the Envoys receive the
	// changes of Kubernetes; nil without Kubernetes.
	Seen map[string]int64 `json:"seen,omitempty"`
	// Held says why its Envoys are not answered; empty means that they are.
	Held string `json:"held,omitempty"`
	// Envoys are the Envoys connected to it, sorted by connection time, the oldest first.
	Envoys []Envoy `json:"envoys,omitempty"`
	// More counts, by proxy, the Envoys beyond the limit, and MoreLagging those of them
	// that are not current.
	More        map[string]int `json:"more,omitempty"`
	MoreLagging map[string]int `json:"more_lagging,omitempty"`
	Engines     []Engine       `json:"engines,omitempty"`
	// Conditions are the conditions that only this replica knows, such as failed logins.
	Conditions []Condition `json:"conditions,omitempty"`
	// Events are the last ones for the others, numbered without gaps.
	Events []Event `json:"events,omitempty"`
}

// Position is what the Envoys of a replica receive: Report.Built, BuiltID and Seen. An
// empty BuiltID means any.
type Position struct {
	Built   int64
	BuiltID string
	Seen    map[string]int64
}

// Position returns the replica's position.
func (r *Report) Position() Position { return Position{r.Built, r.BuiltID, r.Seen} }

// Covers reports whether p has everything that q has. A revision newer than q's is
// assumed to come after it.
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
	Instance  string    `json:"n,omitempty"`
	// Applied is the revision that it has in full. For an Envoy that is Current, it is
	// the revision that last changed what it should have.
	Applied int64 `json:"r,omitempty"`
	// Current says that it has everything that it should have according to the report's
	// Built.
	Current bool `json:"ok,omitempty"`
	// Answered says that it has answered everything that it was sent of listeners and
	// routes. It is not set for an Envoy that is Current.
	Answered bool `json:"answered,omitempty"`
	// Seen is, for each kind, the resourceVersion up to which Applied has the changes of
	// Kubernetes. It is not set for an Envoy that is Current.
	Seen map[string]int64 `json:"seen,omitempty"`
	// Waiting, Refused and Types describe an Envoy that is not Current.
	Waiting []status.Wait             `json:"waiting,omitempty"`
	Refused []status.Refusal          `json:"refused,omitempty"`
	Types   map[string]status.Answers `json:"types,omitempty"`
	// Cut says that they are incomplete, because of the limits.
	Cut bool `json:"cut,omitempty"`

	// first is when another replica first heard of it, by that replica's clock; zero if
	// the Envoy was already there.
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

// The limits of a report. Without details, 1,000 current Envoys take about 30 kB.
const (
	// maxEnvoys and maxEngines bound the Envoys and engines in it.
	maxEnvoys, maxEngines = 5000, 100
	// maxDetails bounds the details of all Envoys that are not current, in bytes of
	// JSON.
	maxDetails = 128 << 10
	// maxListed bounds the waits and refusals of each Envoy, and the names in each;
	// maxText the text of each.
	maxListed, maxText = 10, 500
	// maxConditions bounds the conditions in it.
	maxConditions = 100
	// maxReport bounds what is read of a report, in bytes of JSON.
	maxReport = 16 << 20
)

const (
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Observe returns what a registry knows of the Envoys. built was read before; wanted
// returns the revision that last changed what a proxy's Envoys should have; 0 means that
// there is nothing yet.
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
		Identity: e.Identity, Instance: e.Instance, Applied: e.Applied,
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
		short[typeURL] = status.Answers{
			Sent: shortAnswer(t.Sent), Acked: shortAnswer(t.Acked), Rejected: shortAnswer(t.Rejected),
		}
	}
	return short
}

// shortAnswer returns an answer with only the count of its resources.
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

// WithConditions returns the report with conditions that only this replica knows.
func (r Report) WithConditions(list []model.Condition) Report {
	r.Conditions = nil
	for _, c := range list[:min(maxConditions, len(list))] {
		r.Conditions = append(r.Conditions, Condition{c.Key, c.Code, shorten(c.Message), c.Proxies})
	}
	return r
}

// WithSeen returns the report with the positions in Kubernetes' changes. at returns the
// position of a revision; nil if it is not known.
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

// Status returns an Envoy as a registry would have it.
func (e Envoy) Status() status.Envoy {
	return status.Envoy{
		Proxy: e.Proxy, Address: e.Address, Version: e.Version, Connected: e.Connected, Identity: e.Identity,
		Instance: e.Instance,
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

// decode reads what encode wrote, even in a newer program: unknown fields are ignored.
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
