package acme

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// row is what is stored of a certificate. It is immutable once it is in Watch.rows.
type row struct {
	store.Automatic
	state state
	// served is what the build loop gets.
	served *model.Automatic
	// certificate is that of the authority; nil before there is one.
	certificate *certificate
}

// certificate is an issued certificate.
type certificate struct {
	notBefore, notAfter time.Time
	serial              string
}

// state is store.Automatic.State.
type state struct {
	// Directory is the URL of the authority of the certificate.
	Directory string `json:"directory,omitempty"`
	// Placeholder says that the gateway has signed the certificate itself.
	Placeholder bool `json:"placeholder,omitempty"`
	// Account and Order are the URLs of the account and of the order that runs; empty means that none does.
	Account string `json:"account,omitempty"`
	Order   string `json:"order,omitempty"`
	// Token and Answer are what the gateway answers while the authority verifies.
	Token  string `json:"token,omitempty"`
	Answer string `json:"answer,omitempty"`
	// Records are what a hook may have written into DNS, and Removal when they are removed.
	Records []txtRecord `json:"records,omitempty"`
	Removal removal     `json:"removal,omitzero"`
	// Due is before when nothing is ordered, after failures.
	Due time.Time `json:"due,omitzero"`
	// Failures is how many attempts failed in a row; Error is what the last one said, and Advice what to do.
	Failures int       `json:"failures,omitempty"`
	Error    string    `json:"error,omitempty"`
	Advice   string    `json:"advice,omitempty"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	// Waiting says what an order waits for that is no failure.
	Waiting string `json:"waiting,omitempty"`
	// LagsSince is since when Envoys lack what they should have.
	LagsSince time.Time `json:"lags_since,omitzero"`
	// RenewAt is when the authority wants the certificate renewed, and InfoAt when to ask it again; zero means that it
	// does not say.
	RenewAt time.Time `json:"renew_at,omitzero"`
	InfoAt  time.Time `json:"info_at,omitzero"`
	// IssuedAt is when the certificate was issued, by the clock here, and Early how many in a row were due again soon.
	IssuedAt time.Time `json:"issued_at,omitzero"`
	Early    int       `json:"early,omitempty"`
	// Asked is the count of requests of users that were seen. Renew says that one of them is not fulfilled yet.
	Asked int64 `json:"asked,omitempty"`
	Renew bool  `json:"renew,omitempty"`
	// Test says that this is a test; nil otherwise.
	Test *trial `json:"test,omitempty"`
}

// newRow reads what is stored.
func newRow(a store.Automatic) (*row, error) {
	r := &row{Automatic: a}
	if err := json.Unmarshal([]byte(a.State), &r.state); err != nil {
		return nil, fmt.Errorf("reading the state of the certificate of %s: %w", a.Host, err)
	}
	r.derive()
	return r, nil
}

// derive sets what follows from the rest.
func (r *row) derive() {
	r.served = &model.Automatic{Host: r.Host, Placeholder: r.state.Placeholder}
	if r.Cert != "" {
		r.served.Secret = r.Secret()
	}
	if r.state.Token != "" {
		r.served.Challenge = &model.Challenge{Token: r.state.Token, Answer: r.state.Answer}
	}
	r.certificate = nil
	if leaf := r.Secret().Leaf(); leaf != nil && !r.state.Placeholder {
		r.certificate = &certificate{leaf.NotBefore, leaf.NotAfter, fmt.Sprintf("%x", leaf.SerialNumber)}
	}
}

// equal reports whether the build loop needs nothing new.
func equal(a, b *model.Automatic) bool {
	if a == nil || b == nil || a.Host != b.Host || a.Placeholder != b.Placeholder {
		return a == b
	}
	return same(a.Challenge, b.Challenge) && (a.Secret == nil) == (b.Secret == nil) &&
		(a.Secret == nil || a.Secret.Cert == b.Secret.Cert && a.Secret.PrivateKey == b.Secret.PrivateKey)
}

func same(a, b *model.Challenge) bool { return a == b || a != nil && b != nil && *a == *b }
