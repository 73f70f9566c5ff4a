package chart_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("Values that are wrong are refused:",
	func(text string, words ...string) {
		why := refusal(text)
		for _, w := range words {
			Expect(why).To(ContainSubstring(w))
		}
	},
	Entry("a key that does not exist", "replicas: 3", "additional properties 'replicas' not allowed"),
	Entry("a typo", "controlPlane: {replica: 3}", "at '/controlPlane'", "additional properties 'replica' not allowed"),
	Entry("a typo in a proxy", "proxies: [{name: a, hostPort: {http: 80}}]", "at '/proxies/0'", "additional properties 'hostPort' not allowed"),
	Entry("a typo in a nested key", "envoy: {service: {http_port: 80}}", "at '/envoy/service'", "additional properties 'http_port' not allowed"),
	Entry("a typo in an image", "images: {envoy: {name: x}}", "at '/images/envoy'", "additional properties 'name' not allowed"),
	Entry("a typo in resources", "envoy: {resources: {limit: {cpu: 1}}}", "at '/envoy/resources'", "additional properties 'limit' not allowed"),
	Entry("another mode", "mode: standalone", "at '/mode'", "must be one of 'kubernetes', 'rest'"),
	Entry("another kind", "envoy: {kind: StatefulSet}", "at '/envoy/kind'", "must be one of 'Deployment', 'DaemonSet'"),
	Entry("a word instead of a number", "controlPlane: {replicas: two}", "at '/controlPlane/replicas'", "want integer"),
	Entry("a negative number", "ratelimit: {replicas: -1}", "at '/ratelimit/replicas'"),
	Entry("a port that needs a capability", "envoy: {listener: {httpPort: 80}}", "at '/envoy/listener/httpPort'", "minimum: got 80, want 1,024"),
	Entry("an invalid port", "envoy: {hostPorts: {http: 70000}}", "at '/envoy/hostPorts/http'"),
	Entry("an empty list of proxies", "proxies: []", "at '/proxies'"),
	Entry("a proxy without a name", "proxies: [{kind: DaemonSet}]", "at '/proxies/0'", "missing property 'name'"),
	Entry("a name that Kubernetes refuses", "proxies: [{name: Edge_1}]", "at '/proxies/0/name'"),
	Entry("a duplicate proxy", "proxies: [{name: a}, {name: a}]", "the name a occurs twice"),
	Entry("an address without a port", "ratelimit: {enabled: false, external: {address: limits.example}}", "at '/ratelimit/external/address'"),
	Entry("an invalid digest", "images: {envoy: {digest: latest}}", "at '/images/envoy/digest'"),
	Entry("an unknown source of certificates", "certificates: {source: vault}", "must be one of 'job', 'certManager', 'existing'"),
	Entry("an invalid namespace", "kubernetes: {namespaces: ['*']}", "at '/kubernetes/namespaces/0'"),
	Entry("a host name that none is", "kubernetes: {namespaces: [a], hostNames: {a: ['a.*']}}", "at '/kubernetes/hostNames/a/0'"),
	Entry("a namespace without host names", "kubernetes: {namespaces: [a], hostNames: {a: []}}", "at '/kubernetes/hostNames/a'"),
	Entry("a label of the chart's own", "commonLabels: {app.kubernetes.io/name: x}", "invalid propertyName 'app.kubernetes.io/name'"),
	Entry("an unknown IP family", "ipFamilies: [IPv5]", "at '/ipFamilies/0'"),
	Entry("a listen address instead of a name", "listenAddress: '::'", "at '/listenAddress'"),
	Entry("an identity provider without its secret", "controlPlane: {console: {oidc: {issuer: 'https://id.example.com'}}}", "controlPlane.console.oidc.existingSecret: name the Secret"),
	Entry("a group without rights", "controlPlane: {console: {oidc: {groups: [staff]}}}", "at '/controlPlane/console/oidc/groups/0'"),
	Entry("mode rest without a database", "mode: rest", "rest.database.existingSecret: mode rest needs a Secret with the URL of a PostgreSQL"),
	Entry("an engine without a Redis", "redis: {enabled: false}", "redis.external.address: the rate-limit engine needs a Redis"),
	Entry("a proxy without its certificate", "certificates: {source: existing, existing: {controlPlane: a, ratelimit: b}}", "certificates.existing.proxies.gatehouse: name the Secret"),
)
