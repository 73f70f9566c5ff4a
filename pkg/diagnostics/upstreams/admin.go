package upstreams

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Get requests a path of the admin endpoint of an Envoy, and decodes the JSON of the answer.
type Get func(ctx context.Context, path string, answer any) error

// cluster is a cluster as Envoy currently sees it. Its counts begin when Envoy received
// the cluster, or was started.
type cluster struct {
	endpoints []endpoint
	// ConnectFail counts connections to all of its endpoints that failed, ConnectTimeout
	// those of them that timed out.
	ConnectFail, ConnectTimeout uint64
	// TLS counts failed handshakes, Certificate certificates that were not accepted.
	TLS, Certificate uint64
	// Protocol counts invalid answers, Closed requests whose connection the other side
	// closed.
	Protocol, Closed uint64
	// CheckFailures counts failed health checks, CheckBroken those of them without an
	// answer.
	CheckFailures, CheckBroken uint64
}

// endpoint is an address of a cluster.
type endpoint struct {
	// Name is the DNS name that was resolved to Address; empty if the cluster contains
	// the address itself.
	Name, Address string
	Port          uint32
	// FailedCheck says that it fails its health checks, CheckTimeout that the last one
	// timed out, Pending that it has had none yet, and Ejected that it temporarily
	// receives no requests because too many failed.
	FailedCheck, CheckTimeout, Pending, Ejected bool
	// Counts of requests. Sent are those that reached a connection; an Error is a 5xx
	// answer, or none, unless the proxy is lean. ConnectFail counts connections.
	Sent, Active, Success, Error, Timeout, ConnectFail uint64
}

// clusters returns clusters with these names; one that Envoy does not have is left out.
func (get Get) clusters(ctx context.Context, names []string) (map[string]*cluster, error) {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	these := "(" + strings.Join(quoted, "|") + ")"
	list, err := get.endpoints(ctx, "^"+these+"$")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	counters, err := get.stats(ctx, "Counters", `^cluster\.`+these+`\.(`+
		`upstream_cx_(connect_fail|connect_timeout|protocol_error|destroy_remote_with_active_rq)|`+
		`ssl\.(connection_error|fail_verify_.*)|health_check\.(failure|network_failure))$`)
	if err != nil {
		return nil, err
	}
	for name, c := range list {
		of := func(counter string) uint64 { return counters["cluster."+name+"."+counter] }
		c.ConnectFail, c.ConnectTimeout = of("upstream_cx_connect_fail"), of("upstream_cx_connect_timeout")
		c.Protocol, c.Closed = of("upstream_cx_protocol_error"), of("upstream_cx_destroy_remote_with_active_rq")
		c.TLS = of("ssl.connection_error")
		c.Certificate = of("ssl.fail_verify_error") + of("ssl.fail_verify_san") +
			of("ssl.fail_verify_no_cert") + of("ssl.fail_verify_cert_hash")
		c.CheckFailures, c.CheckBroken = of("health_check.failure"), of("health_check.network_failure")
	}
	return list, nil
}

// endpoints requests clusters without their counters. The answer is an envoy.admin.v3.Clusters.
func (get Get) endpoints(ctx context.Context, filter string) (map[string]*cluster, error) {
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
					Pipe struct{ Path string }
				}
				Stats []struct {
					Name  string
					Value uint64 `json:",string"`
				}
				Health struct {
					FailedCheck   bool `json:"failed_active_health_check"`
					CheckTimeout  bool `json:"active_hc_timeout"`
					FailedOutlier bool `json:"failed_outlier_check"`
					PendingCheck  bool `json:"pending_active_hc"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := get(ctx, "/clusters?format=json&filter="+url.QueryEscape(filter), &answer); err != nil {
		return nil, err
	}
	list := make(map[string]*cluster, len(answer.Clusters))
	for _, c := range answer.Clusters {
		next := &cluster{}
		for _, h := range c.Hosts {
			counts := map[string]uint64{}
			for _, s := range h.Stats {
				counts[s.Name] = s.Value
			}
			next.endpoints = append(next.endpoints, endpoint{
				Name: h.Hostname, Address: cmp.Or(h.Address.Socket.Address, model.SocketPrefix+h.Address.Pipe.Path), Port: h.Address.Socket.Port,
				FailedCheck: h.Health.FailedCheck, CheckTimeout: h.Health.CheckTimeout,
				Pending: h.Health.PendingCheck, Ejected: h.Health.FailedOutlier,
				Sent: counts["rq_total"], Active: counts["rq_active"], Success: counts["rq_success"],
				Error: counts["rq_error"], Timeout: counts["rq_timeout"], ConnectFail: counts["cx_connect_fail"],
			})
		}
		list[c.Name] = next
	}
	return list, nil
}

// failingClusters lists the clusters that have no endpoint, or one that receives no
// requests because of its health.
func (get Get) failingClusters(ctx context.Context) ([]string, error) {
	gauges, err := get.stats(ctx, "Gauges", `^cluster\..*\.membership_(healthy|total)$`)
	if err != nil {
		return nil, err
	}
	var list []string
	for name, total := range gauges {
		prefix, ok := strings.CutSuffix(name, ".membership_total")
		if ok && (total == 0 || gauges[prefix+".membership_healthy"] < total) {
			list = append(list, strings.TrimPrefix(prefix, "cluster."))
		}
	}
	return list, nil
}

// stats requests counters or gauges.
func (get Get) stats(ctx context.Context, kind, filter string) (map[string]uint64, error) {
	var answer struct {
		Stats []struct {
			Name  string
			Value uint64
		}
	}
	if err := get(ctx, "/stats?format=json&type="+kind+"&filter="+url.QueryEscape(filter), &answer); err != nil {
		return nil, err
	}
	list := make(map[string]uint64, len(answer.Stats))
	for _, s := range answer.Stats {
		list[s.Name] = s.Value
	}
	return list, nil
}
