package config_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

var _ = Describe("The settings of an Envoy elsewhere", func() {
	It("have defaults", func() {
		want := config.Connect{MaxConnections: 50_000, Format: "yaml"}
		Expect(given{command: config.Bootstrap}.mustLoad().Connect).To(Equal(want))
		want.Format = ""
		Expect(given{command: config.Envoy}.mustLoad().Connect).To(Equal(want))
	})

	It("are all read", func() {
		g := given{command: config.Bootstrap, flags: map[string]string{
			"xds-tls-ca": "ca.crt", "xds-tls-cert": "gw.crt", "xds-tls-server-name": "::1", "xds-token-file": "token", "sds-dir": "sds",
			"sidecar": "true", "node-metadata": "zone=a, build=7=8,empty=", "max-heap": "512MiB", "format": "json",
		}, env: []string{"GATEHOUSE_XDS_TLS_KEY=gw.key", "GATEHOUSE_STATS_TAGS=zone=a", "GATEHOUSE_MAX_CONNECTIONS=7"}}
		Expect(g.mustLoad().Connect).To(Equal(config.Connect{
			TLSCA: "ca.crt", TLSCert: "gw.crt", TLSKey: "gw.key", TLSServerName: "::1", TokenFile: "token", SDSDir: "sds",
			Sidecar: true, NodeMetadata: map[string]string{"zone": "a", "build": "7=8", "empty": ""}, StatsTags: map[string]string{"zone": "a"},
			MaxHeap: 536_870_912, MaxConnections: 7, Format: "json",
		}))
		Expect(given{command: config.Envoy, flags: map[string]string{"drain-time": "10s"}}.mustLoad().Connect.DrainTime).To(Equal(10 * time.Second))
	})

	DescribeTable("include sizes",
		func(text string, want int) {
			Expect(given{command: config.Envoy, flags: map[string]string{"max-heap": text}}.mustLoad().Connect.MaxHeap).To(BeEquivalentTo(want))
		},
		Entry("none", "", 0),
		Entry("in bytes", "16777216", 16_777_216),
		Entry("in KiB", "20000KiB", 20_480_000),
		Entry("in GiB", "3GiB", 3_221_225_472),
	)

	DescribeTable("are refused",
		func(flag, value, want string) {
			_, _, err := given{command: config.Bootstrap, flags: map[string]string{flag: value}}.load()
			Expect(err).To(MatchError("--" + flag + `: "` + value + `" (from the command line) is not ` + want))
		},
		Entry("less heap than any Envoy needs", "max-heap", "16777215", "a size of at least 16MiB such as 512MiB or 2GiB"),
		Entry("an unknown unit", "max-heap", "1TB", "a size of at least 16MiB such as 512MiB or 2GiB"),
		Entry("a size that overflows", "max-heap", "99999999999GiB", "a size of at least 16MiB such as 512MiB or 2GiB"),
		Entry("no connections", "max-connections", "0", "a whole number from 1 to 10000000"),
		Entry("a name with a slash", "instance", "edge/1", "letters, digits, dots, underscores and hyphens, at most 64"),
		Entry("a name that is too long", "instance", strings.Repeat("a", 65), "letters, digits, dots, underscores and hyphens, at most 64"),
		Entry("metadata without a value", "node-metadata", "zone", `a list such as zone=a,build=7; names do not begin with "gatehouse_"`),
		Entry("metadata without a name", "node-metadata", "=a", `a list such as zone=a,build=7; names do not begin with "gatehouse_"`),
		Entry("metadata twice", "node-metadata", "a=1,a=2", `a list such as zone=a,build=7; names do not begin with "gatehouse_"`),
		Entry("metadata of the control plane", "node-metadata", "gatehouse_listeners=x", `a list such as zone=a,build=7; names do not begin with "gatehouse_"`),
		Entry("a tag that is not a valid label", "stats-tags", "a-b=1", "a list such as zone=a,cluster=edge; names have letters, digits and underscores"),
		Entry("a server name with a port", "xds-tls-server-name", "a:1", "a DNS name or an IP address"),
		Entry("an unknown format", "format", "toml", "one of yaml, json"),
	)

	DescribeTable("that depend on each other are refused alone",
		func(flags map[string]string, want string) {
			_, _, err := given{command: config.Envoy, flags: flags}.load()
			Expect(err).To(MatchError(want))
		},
		Entry("a certificate", map[string]string{"xds-tls-ca": "ca", "xds-tls-cert": "c"}, "--xds-tls-cert and --xds-tls-key belong together: set both or neither"),
		Entry("a key", map[string]string{"xds-tls-ca": "ca", "xds-tls-key": "c"}, "--xds-tls-cert and --xds-tls-key belong together: set both or neither"),
		Entry("a pair without the authorities", map[string]string{"xds-tls-cert": "c", "xds-tls-key": "k"},
			"--xds-tls-cert, --xds-tls-server-name and --sds-dir need --xds-tls-ca: the authorities with which Envoy verifies its control plane"),
	)
})
