package standalone

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// What Envoy thinks of an endpoint.
const (
	// Healthy gets requests.
	Healthy = "healthy"
	// Unhealthy has failed its health checks.
	Unhealthy = "unhealthy"
	// Unchecked waits for its first health check.
	Unchecked = "unchecked"
	// Ejected has failed too many requests and gets none for a while.
	Ejected = "ejected"
)

// Endpoint is an address of a cluster as Envoy sees it now.
type Endpoint struct {
	Cluster string
	// Name is the DNS name that was resolved to Address; empty where the cluster
	// has the address itself.
	Name, Address string
	Port          uint32
	Health        string
}

// Endpoints asks Envoy for those of some clusters.
func (e *Envoy) Endpoints(ctx context.Context, clusters []string) ([]Endpoint, error) {
	if e.running.Load() == nil {
		return nil, errNoAdmin
	}
	quoted := make([]string, len(clusters))
	for i, c := range clusters {
		quoted[i] = regexp.QuoteMeta(c)
	}
	filter := "^(" + strings.Join(quoted, "|") + ")$"
	// The answer as in envoy.admin.v3.Clusters.
	var answer struct {
		Clusters []struct {
			Name  string
			Hosts []struct {
				Hostname string
				Address  struct {
					Socket struct {
						Address string
						Port    uint32 `json:"port_value"`
					} `json:"socket_address"`
				}
				Health struct {
					FailedCheck   bool `json:"failed_active_health_check"`
					FailedOutlier bool `json:"failed_outlier_check"`
					PendingCheck  bool `json:"pending_active_hc"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := e.call(ctx, http.MethodGet, "/clusters?format=json&filter="+url.QueryEscape(filter), &answer); err != nil {
		return nil, err
	}
	var list []Endpoint
	for _, c := range answer.Clusters {
		for _, h := range c.Hosts {
			endpoint := Endpoint{
				Cluster: c.Name, Name: h.Hostname, Address: h.Address.Socket.Address, Port: h.Address.Socket.Port, Health: Healthy,
			}
			switch {
			case h.Health.PendingCheck:
				endpoint.Health = Unchecked
			case h.Health.FailedCheck:
				endpoint.Health = Unhealthy
			case h.Health.FailedOutlier:
				endpoint.Health = Ejected
			}
			list = append(list, endpoint)
		}
	}
	return list, nil
}
