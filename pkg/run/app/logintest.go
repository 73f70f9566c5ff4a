package app

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/logintest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

// loginTest tries logins under the rules for requests to identity providers.
func (p *controlPlane) loginTest(cfg config.Config, settings compile.Settings, own ownEnvoy) (rest.LoginTest, error) {
	client, err := p.providerClient(cfg, settings)
	return logintest.Tester{Client: client, Settings: settings, Own: own.proxy}.Test, err
}
