package store

import (
	"context"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Automatic is what is known of a certificate that the gateway orders itself for a host. It is not part of the
// configuration: it has no revision, and a rollback does not change it.
type Automatic struct {
	// Host identifies it, in lower case.
	Host string
	// Cert and Key are the certificate that is served, with its chain, and its key; empty before there is one. OrderKey is
	// the key of the next one while it is ordered. Keys are sealed when they are stored.
	Cert, Key, OrderKey string
	// State is the rest, as whoever orders writes it. It has no secrets.
	State string
	// Asked counts the requests of users for a new certificate. Only AskAutomatic changes it.
	Asked int64
	// Gone says that it was deleted.
	Gone bool
}

// Account is an account at an authority.
type Account struct {
	// ID is made from what the account is for.
	ID string
	// URL identifies it at the authority; empty before it is known there.
	URL string
	// Key is its private key, which is sealed when it is stored.
	Key string
}

// AutomaticCertificates keeps automatic certificates. One of several replicas orders: the holder of the lease. Writes of
// another one are refused with a Conflict error.
type AutomaticCertificates interface {
	// AutomaticSince returns what changed after a version; everything for version 0, and if full is true because the
	// database was restored.
	AutomaticSince(ctx context.Context, version int64) (changed []Automatic, now int64, full bool, err error)
	// SaveAutomatic stores a certificate, and seals its keys.
	SaveAutomatic(ctx context.Context, holder string, a *Automatic) error
	// DeleteAutomatic deletes a certificate with its keys.
	DeleteAutomatic(ctx context.Context, holder, host string) error
	// AskAutomatic asks for a new certificate. Every replica may do so. An unknown one is a NotFound error.
	AskAutomatic(ctx context.Context, host string) error
	// Account returns an account, with its key sealed; nil if there is none.
	Account(ctx context.Context, id string) (*Account, error)
	// SaveAccount stores an account, and seals its key.
	SaveAccount(ctx context.Context, holder string, a *Account) error
	// Holds returns until when something is held back, by its ID.
	Holds(ctx context.Context) (map[string]time.Time, error)
	// SaveHold stores until when something is held back; an earlier time than that stored changes nothing. Those that end
	// by now are deleted.
	SaveHold(ctx context.Context, holder, id string, until, now time.Time) error
	// HoldLease makes holder the one who orders for a time, by the clock of the database, unless another one is. A time of
	// 0 ends that.
	HoldLease(ctx context.Context, holder string, lasts time.Duration) (bool, error)
	// AutomaticChanged receives after a certificate was changed, here or in another process. It has capacity 1 and one
	// reader.
	AutomaticChanged() <-chan struct{}
	// Unseal opens a key.
	Unseal(sealed, place string) (string, error)
}

// Secret returns the certificate that is served.
func (a *Automatic) Secret() *model.Secret { return model.AutomaticSecret(a.Host, a.Cert, a.Key) }

// OrderPlace is the place that the key of an order is sealed for.
func (a *Automatic) OrderPlace() string { return "certificate/" + a.Host + "/order" }

// Place is the place that the key of an account is sealed for.
func (a *Account) Place() string { return "account/" + a.ID }
