package providers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// conditionSource is the source of the conditions of providers.
const conditionSource = "providers"

// tell updates the conditions. It requires mu.
func (w *Watch) tell() {
	var list []model.Condition
	for _, p := range w.sources {
		if p.failures == 0 {
			continue
		}
		for _, key := range p.users {
			what := p.sentence(w.set.tokens[key])
			list = append(list, model.Condition{Key: key, Code: model.ProviderFailing, Message: "the identity provider " + what})
			if key.Kind != model.KindFilter {
				continue
			}
			byPath := func(a, b model.Key) int { return cmp.Compare(a.Path(), b.Path()) }
			for _, place := range slices.SortedFunc(maps.Keys(w.set.places[key.Name()]), byPath) {
				list = append(list, model.Condition{
					Key: place, Code: model.ProviderFailing,
					Message: fmt.Sprintf("the identity provider of filter %q %s", key.Name(), what),
				})
			}
		}
	}
	w.opts.Status.SetConditions(conditionSource, list)
}

// sentence describes what is wrong with a provider, since when, and what still works.
func (p *provider) sentence(ofTokens bool) string {
	meanwhile, goesOn := "nobody can log in before it answers", "logins continue with"
	if ofTokens {
		meanwhile, goesOn = "none of its tokens is accepted before it answers", "tokens are verified with"
	}
	if !p.answered.IsZero() {
		meanwhile = goesOn + " its answer of " + clock(p.answered)
	}
	return fmt.Sprintf("fails since %s: %s; %s", clock(p.failed), p.known.Fault, meanwhile)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// announce publishes a change of what is known. It requires mu.
func (w *Watch) announce(p *provider, now model.Provider) {
	was := model.Provider{}
	if p.known != nil {
		was = *p.known
	}
	where := cmp.Or(p.source.Issuer, p.source.JWKSURI)
	e := status.Event{Message: "the identity provider " + where + " " + news(was, now)}
	if now.Fault != "" {
		e.Code, e.Message = model.ProviderFailing, now.Fault
		w.opts.Log.Warn("identity provider cannot be reached; its last answer stays in force", "provider", where,
			"err", now.Fault)
	} else {
		w.opts.Log.Info("identity provider has answered", "provider", where, "news", news(was, now))
	}
	for _, key := range p.users[:min(len(p.users), status.MaxNamed)] {
		e.Object = key.Path()
		w.opts.Status.RecordProvider(e)
	}
}

// news describes the difference.
func news(was, now model.Provider) string {
	switch {
	case was.JWKS == "":
		return "has answered"
	case was.JWKS != now.JWKS:
		return "has other keys"
	case !sameButFault(was, now):
		return "has other endpoints"
	}
	return "answers again"
}

// Report is what is known of the provider of a login.
type Report struct {
	// Object is the path of the filter or global config.
	Object string
	// Age is the time since the last good answer; negative if there was none.
	Age time.Duration
	// Failures is the number of failed requests since a login first needed the answer.
	Failures int
}

// Reports returns what is known of each login, in no order.
func (w *Watch) Reports() []Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	var list []Report
	for _, p := range w.sources {
		age := time.Duration(-1)
		if !p.answered.IsZero() {
			age = max(0, now.Sub(p.answered))
		}
		for _, key := range p.users {
			list = append(list, Report{key.Path(), age, p.total})
		}
	}
	return list
}
