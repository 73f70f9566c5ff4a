package app

import (
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/providers"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/signin"
)

// watchProviders makes the source of the build loop that learns from identity
// providers.
func (p *controlPlane) watchProviders(
	cfg config.Config, settings compile.Settings, registry *status.Registry,
) (*providers.Watch, error) {
	client, err := p.providerClient(cfg, settings)
	if err != nil {
		return nil, err
	}
	source := store.Source(p.expiry)
	if p.kube != nil {
		source = p.kube.Source()
	}
	return providers.New(providers.Options{
		Source: source, Ask: client.Ask, Notes: p.store, Status: registry, Log: p.log,
	}), nil
}

// providerClient makes the client for identity providers, which connects only where the
// settings allow it.
func (p *controlPlane) providerClient(cfg config.Config, settings compile.Settings) (*oidc.Client, error) {
	rules, err := p.providerRules(cfg, settings)
	return oidc.NewClient(oidc.Options{Rules: rules, Authorities: settings.Authorities, Open: settings.Open}), err
}

// providerRules say where the control plane may connect to what the configuration names: identity providers and
// certificate authorities.
func (p *controlPlane) providerRules(cfg config.Config, settings compile.Settings) (oidc.Rules, error) {
	machine, err := thisMachine(cfg)
	return oidc.Rules{
		Upstreams: settings.Upstreams, Allow: cfg.ProviderAllow, Machine: machine, OwnAddresses: p.listenAddresses,
	}, err
}

// signIn returns how users of an identity provider sign in to the console; nil without one.
func (p *controlPlane) signIn(cfg config.Config, settings compile.Settings) (*rest.SignIn, error) {
	o := cfg.Console
	if o.Issuer == "" {
		return nil, nil
	}
	client, err := p.providerClient(cfg, settings)
	if err != nil {
		return nil, err
	}
	s := &rest.SignIn{Name: o.Name, Session: o.Session, Provider: signin.New(signin.Options{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.RedirectURL, Scopes: o.Scopes,
		GroupsClaim: o.GroupsClaim, Client: client, Seal: p.store.Seal, Open: p.store.Unseal, Now: time.Now, Log: p.log,
	})}
	for _, g := range o.Groups {
		s.Groups = append(s.Groups, rest.GroupRights(g))
	}
	return s, nil
}
