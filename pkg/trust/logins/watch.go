package logins

import (
	"log/slog"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Watch reports failed logins, as an Envoy of this process logs them, and fetches keys that the Envoy lacks.
type Watch struct {
	Status *status.Registry
	Log    *slog.Logger
	// Refresh asks an identity provider for its keys again.
	Refresh func(model.Key)
	Now     func() time.Time

	counts Counts
}

// HandleLine handles a line of an Envoy. Anybody can send a token with an unknown key: the fetches that follow
// have their own bound (providers.Times.Apart). Each reason of each service is reported at most once a
// minute, however many logins fail.
func (w *Watch) HandleLine(line []byte) {
	if filter, ok := ReadUnknownKey(line); ok {
		w.Refresh(filter)
		return
	}
	f, ok := Read(line)
	if !ok {
		return
	}
	fresh, more := w.counts.Add(f, w.Now())
	if f.Reason.Code == UnknownKey {
		w.Refresh(f.Login)
	}
	if !fresh {
		return
	}
	w.Log.Warn("login failed", "service", f.Service, "login", f.Login.Path(), "code", f.Reason.Code,
		"reason", f.Reason.Message, "request_id", f.RequestID, "more", more)
	w.Status.RecordLogin(model.Condition{
		Key: model.ServiceKey(f.Service), Code: f.Reason.Code, Message: f.Reason.Message,
	})
}

// Conditions returns the conditions of now, see Counts.
func (w *Watch) Conditions() []model.Condition { return w.counts.Conditions(w.Now()) }

// Totals returns the number of failures by the code of their reason, see Counts.
func (w *Watch) Totals() map[string]int { return w.counts.Totals() }
