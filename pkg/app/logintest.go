package app

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/logintest"
	"github.com/gatehouse-gateway/gatehouse/pkg/rest"
)

// loginTest tries logins under the rules for requests to identity providers.
func (p *controlPlane) loginTest(cfg config.Config, settings compile.Settings, own *ownEnvoy) (rest.LoginTest, error) {
	client, err := p.providerClient(cfg, settings)
	return logintest.Tester{Client: client, Settings: settings, Own: own.proxy()}.Test, err
}
