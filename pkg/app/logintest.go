package app

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/logintest"
	"github.com/gatehouse-gateway/gatehouse/pkg/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/rest"
)

// loginTest tries logins with the rules for asking identity providers.
func (p *controlPlane) loginTest(cfg config.Config, settings compile.Settings, own *ownEnvoy) (rest.LoginTest, error) {
	machine, err := thisMachine(cfg)
	if err != nil {
		return nil, err
	}
	client := oidc.NewClient(oidc.Options{
		Rules:       oidc.Rules{Upstreams: settings.Upstreams, Allow: cfg.ProviderAllow, Machine: machine, Places: p.listenPlaces},
		Authorities: settings.Authorities, Open: settings.Open,
	})
	return logintest.Tester{Client: client, Settings: settings, Own: own.proxy()}.Test, nil
}
