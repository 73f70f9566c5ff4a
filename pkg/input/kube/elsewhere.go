package kube

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// Elsewhere says where to change an object of the mirror. key may have no name.
func (w *Watch) Elsewhere(key model.Key) string {
	const general = "the configuration comes from Kubernetes (--mode kubernetes), and this API only reads it: "
	var edit string
	switch key.Kind {
	case model.KindService:
		edit = w.editOf(key, gatewayv1.KindGatewayHost)
	case model.KindFilter:
		edit = w.editOf(key, gatewayv1.KindRouteFilter)
	case model.KindGlobalConfig:
		edit = w.editOf(key, gatewayv1.KindGlobalConfig)
	case model.KindUpstream:
		edit = "upstreams are the ports of Services, with what spec.routes[].services[] of a GatewayHost says of them; " +
			"edit those with kubectl"
	case model.KindSecret:
		edit = "secrets are the Secrets that objects name; edit those with kubectl"
	case model.KindKeySet, model.KindAPIKey:
		edit = "key sets are the Secrets that RouteFilters name in keys; edit those with kubectl"
	case model.KindConsumer:
		edit = w.editOf(key, gatewayv1.KindConsumer)
	case model.KindProxy:
		edit = "its proxies are those of --kubernetes-proxies, " +
			"their fields are in the file of --kubernetes-proxy-settings, " +
			"and spec.proxy of a GatewayHost or GlobalConfig attaches it"
	case "token":
		return "tokens are stored in a database, and this process has none that outlives it (--mode kubernetes): " +
			"give the API a token with --api-admin-token-file, and Envoys certificates with --xds-tls-client-ca"
	default:
		edit = "edit the GatewayHost, RouteFilter and GlobalConfig objects with kubectl"
	}
	return general + edit
}

// editOf says how to edit the Kubernetes object from which an object of the mirror was made.
func (w *Watch) editOf(key model.Key, kind string) string {
	resource := strings.ToLower(kind)
	if key.Name() == "" {
		return fmt.Sprintf("create a %s with kubectl apply", kind)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, o := range w.objects {
		if ref.Kind == kind && slices.ContainsFunc(o.Made, func(m translate.Made) bool { return m.Key == key }) {
			return fmt.Sprintf("edit %s with kubectl edit %s.%s -n %s %s", ref, resource, gatewayv1.Group, ref.Namespace,
				ref.Name)
		}
	}
	return fmt.Sprintf("edit the %s objects with kubectl", kind)
}
