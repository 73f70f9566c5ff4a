package acme

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// source is the source of the conditions.
const source = "automatic certificates"

// marshal writes what newRow reads.
func marshal(s state) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("writing the state of a certificate: %w", err)
	}
	return string(text), nil
}

func (w *Watch) count(result string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[result]++
}

// Attempts returns how many attempts of this process ended, by their result: issued or failed.
func (w *Watch) Attempts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

// issued says that there is a new certificate.
func (w *Watch) issued(r *row) {
	w.count("issued")
	end := r.certificate.notAfter.UTC().Format(time.RFC3339)
	w.opts.Log.Info("certificate issued", "host", r.Host, "directory", r.state.Directory,
		"serial", r.certificate.serial, "not_after", end)
	services, _ := w.served(r.Host)
	for _, service := range services {
		w.opts.Status.RecordCertificate(model.Condition{
			Key: service, Code: model.CertificateIssued,
			Message: fmt.Sprintf("%s has issued a certificate for %s, which ends on %s", r.state.Directory, r.Host, end),
		})
	}
}

// tell updates the conditions.
func (w *Watch) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var conditions []model.Condition
	for _, want := range w.list {
		if c := condition(want, w.rows[want.host]); c != nil {
			conditions = append(conditions, *c)
		}
	}
	failing := map[model.Key]string{}
	for _, c := range conditions {
		if c.Code != model.CertificateFailing {
			continue
		}
		failing[c.Key] = c.Message
		if w.lastTold[c.Key] != c.Message {
			w.opts.Status.RecordCertificate(c)
		}
	}
	w.lastTold = failing
	w.opts.Status.SetConditions(source, conditions)
}

// condition says what is not as the user wants it; nil if nothing is.
func condition(want wanted, r *row) *model.Condition {
	c := &model.Condition{Key: want.service.Key(), Code: model.CertificatePending}
	have := r != nil && r.certificate != nil
	switch {
	case want.byHand:
		return nil
	case want.problem != "" && have:
		c.Code, c.Message = model.CertificateFailing, fmt.Sprintf("the certificate for %s is not renewed: %s", want.host, want.problem)
	case want.problem != "":
		c.Message = fmt.Sprintf("no certificate is ordered for %s: %s", want.host, want.problem)
	case r != nil && r.state.Failures > 0:
		c.Code = model.CertificateFailing
		what := "no certificate for"
		if have {
			what = "no new certificate for"
		}
		c.Message = fmt.Sprintf("%s %s: %s says %q: %s. The next attempt is at %s; gatehouse certificate renew %s tries again now",
			what, want.host, want.from.config.URL(), r.state.Error, r.state.Advice, r.state.Due.UTC().Format(time.RFC3339), want.host)
	case r != nil && r.state.Removal.Error != "":
		c.Code = model.CertificateFailing
		c.Message = fmt.Sprintf("the record %s in DNS is still there: %s. It is tried again at %s", recordName(want.host), r.state.Removal.Error,
			r.state.Removal.At.UTC().Format(time.RFC3339))
	case have:
		return nil
	case r != nil && r.state.Waiting != "":
		c.Message = fmt.Sprintf("a certificate for %s is ordered as soon as possible: %s", want.host, r.state.Waiting)
	default:
		c.Message = fmt.Sprintf("a certificate for %s is being ordered", want.host)
	}
	return c
}

// Certificate is what is known of an automatic certificate, for users.
type Certificate struct {
	// +example=shop.example.com
	Host    string `json:"host"`
	Service string `json:"service"`
	// What is the case: issued, ordering (the first one), waiting (for what reason has), failing (reason and advice say
	// why), by_hand (an attached certificate is used), or unavailable (none can be ordered; reason says why).
	// +enum=[issued, ordering, waiting, failing, by_hand, unavailable]
	State string `json:"state"`
	// URL of the authority's directory.
	Directory string `json:"directory,omitempty"`
	// Serial number of the certificate, in hexadecimal.
	Serial   string      `json:"serial,omitempty"`
	NotAfter *model.Time `json:"not_after,omitempty"`
	// When it is renewed, or when the next attempt begins.
	Next *model.Time `json:"next,omitempty"`
	// What the authority said, or what is waited for.
	Reason string `json:"reason,omitempty"`
	// What to do about it.
	Advice string `json:"advice,omitempty"`
	// Failed attempts in a row.
	Failures int `json:"failures,omitempty"`
	// How the host is proven: http-01 or dns-01.
	// +enum=[http-01, dns-01]
	Challenge string `json:"challenge"`
	// Why the hook did not remove the record that it wrote into DNS.
	RecordLeft string `json:"record_left,omitempty"`
	// The gateway has signed the certificate that is served itself.
	Placeholder bool `json:"placeholder,omitempty"`
}

// List returns all automatic certificates, by host.
func (w *Watch) List() []Certificate {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]Certificate, 0, len(w.list))
	for _, want := range w.list {
		list = append(list, describe(want, w.rows[want.host]))
	}
	slices.SortStableFunc(list, func(a, b Certificate) int { return strings.Compare(a.Host, b.Host) })
	return list
}

func describe(want wanted, r *row) Certificate {
	c := Certificate{Host: want.host, Service: want.service.Name, State: "ordering", Reason: want.problem, Challenge: want.challenge()}
	if r != nil {
		c.RecordLeft, c.Placeholder = r.state.Removal.Error, r.state.Placeholder && r.certificate == nil
	}
	if r != nil && r.certificate != nil {
		c.State, c.Directory, c.Serial, c.NotAfter = "issued", r.state.Directory, r.certificate.serial, new(model.At(r.certificate.notAfter))
	}
	switch {
	case want.byHand:
		c.State, c.Reason = "by_hand", ""
		return c
	case want.problem != "":
		c.State = "unavailable"
		return c
	case r == nil:
		return c
	case r.state.Failures > 0:
		c.State, c.Reason, c.Advice, c.Failures = "failing", r.state.Error, r.state.Advice, r.state.Failures
	case r.state.Waiting != "":
		c.State, c.Reason = "waiting", r.state.Waiting
	}
	if next := later(r.orderAt(want), r.state.Due); !next.IsZero() {
		c.Next = new(model.At(next))
	}
	return c
}

// served returns the services that have the certificate of a host, and the number of their proxies.
func (w *Watch) served(host string) (services []model.Key, proxies int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]bool{}
	for _, want := range w.list {
		if want.host == host {
			services = append(services, want.service.Key())
			maps.Copy(all, w.set.proxies[want.service.Name])
		}
	}
	return services, len(all)
}

// Ask asks for a new certificate for a host, also before the time of the next attempt.
func (w *Watch) Ask(ctx context.Context, host string) ([]Certificate, error) {
	host = strings.ToLower(host)
	var asked []Certificate
	for _, c := range w.List() {
		if c.Host != host {
			continue
		}
		switch c.State {
		case "by_hand":
			return nil, &model.Error{
				Kind: model.Conflict, Message: "the certificate of " + host + " is attached to service " + c.Service + ", and not ordered by the gateway",
				Hint: "detach the secret first",
			}
		case "unavailable":
			return nil, &model.Error{Kind: model.Conflict, Message: "no certificate can be ordered for " + host + ": " + c.Reason}
		}
		asked = append(asked, c)
	}
	if len(asked) == 0 {
		return nil, &model.Error{
			Kind: model.NotFound, Message: "no service with Certificate=auto has the host " + host, Hint: "GET /certificate lists them",
		}
	}
	return asked, w.opts.Store.AskAutomatic(ctx, host)
}
