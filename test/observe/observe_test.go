package observe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestObserve(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Observe")
}

const (
	files    = "../../charts/gatehouse/files/"
	runbooks = "../../docs/runbooks/"
)

// alert is one of alerts.yaml.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type alerts struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

func readAlerts() alerts {
	text, err := os.ReadFile(files + "alerts.yaml")
	if err != nil {
		panic(err)
	}
	var all alerts
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		panic(err)
	}
	return all
}

// dashboard is what the specs read of one.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []struct {
		ID          int
		Title, Type string
		GridPos     struct{ X, Y, W, H int }
		FieldConfig struct{ Defaults struct{ Unit string } }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

func dashboards() map[string]dashboard {
	paths, err := filepath.Glob(files + "dashboards/*.json")
	if err != nil || len(paths) == 0 {
		panic("there are no dashboards")
	}
	all := map[string]dashboard{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			panic(path + ": " + err.Error())
		}
		all[filepath.Base(path)] = d
	}
	return all
}

var (
	prometheus *testkit.Prometheus
	api        testkit.API
	// variables are those of the dashboards.
	variables = strings.NewReplacer("$__rate_interval", "5s", "$cluster", ".*", "$service", ".*")
)

func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	DeferCleanup(cancel)
	return ctx
}

func freePort() string {
	GinkgoHelper()
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return strconv.Itoa(port)
}

// values waits until an expression has series, and returns them.
func values(expression string) (found map[string]string) {
	GinkgoHelper()
	Eventually(func() (map[string]string, error) {
		var err error
		found, err = prometheus.Query(limit(), expression)
		return found, err
	}).ShouldNot(BeEmpty(), expression)
	return found
}

var _ = BeforeSuite(func() {
	httpPort, httpsPort, admin := freePort(), freePort(), freePort()
	g, err := testkit.StartGatehouse(limit(), nil, "standalone", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0",
		"--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:"+admin, "--http-port", httpPort, "--https-port", httpsPort)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String()) })
	Expect(g.WaitReady(limit())).To(Succeed())
	api = g.API
	backend, err := testkit.StartBackend("blue", testkit.BackendOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(backend.Close)
	collector, err := testkit.StartCollector()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(collector.Close)
	authority, err := testkit.NewAuthority("observe")
	Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}, NotAfter: time.Now().Add(48 * time.Hour)})
	Expect(err).NotTo(HaveOccurred())
	post := func(path string, fields ...string) {
		a, err := g.API.Post(limit(), path, fields...)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
	}
	post("/upstream", "Upstream_name=blue", "Upstream_ip=127.0.0.1", fmt.Sprint("Upstream_port=", backend.Port), "Upstream_hc_path="+testkit.HealthPath, "Upstream_hc_intervalseconds=1")
	post("/upstream", "Upstream_name=gone", "Upstream_ip=127.0.0.1", "Upstream_port="+freePort(), "Upstream_hc_path=/", "Upstream_hc_intervalseconds=1")
	post("/upstream", "Upstream_name=shut", "Upstream_ip=127.0.0.1", "Upstream_port="+freePort())
	post("/upstream", "Upstream_name=collector", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", collector.GRPC))
	post("/secret", "Secret_name=shop", "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
	post("/service", "Service_Name=shop", "fqdn=shop.test")
	post("/service/shop/secret/shop")
	for _, name := range []string{"blue", "gone", "shut"} {
		post("/service/shop/route", "Route_Name="+name, "Route_prefix=/"+name)
		post("/service/shop/route/" + name + "/upstream/" + name)
	}
	post("/proxy", "Name=gw")
	for kind, config := range map[string]string{"tracing": `{"upstream":"collector"}`, "accesslog": `{"upstream":"collector"}`} {
		post("/globalconfig", "globalconfig_name="+kind, "globalconfig_type=globalconfig_"+kind, "config="+config)
	}
	post("/globalconfig", "globalconfig_name=metrics", "globalconfig_type=globalconfig_metrics", `config={"routes":true,"bytes":true,"retries":true}`)
	post("/proxy/gw/service/shop?wait=applied&timeout=30s")
	hanging, err := testkit.StartCollector()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hanging.Close)
	hanging.Hang()
	post("/upstream", "Upstream_name=hanging", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", hanging.GRPC))
	post("/globalconfig", "globalconfig_name=als", "globalconfig_type=globalconfig_accesslog", `config={"upstream":"hanging","protocol":"als","discloses":["query","referer","metadata"]}`)
	// A log whose collector is away.
	post("/globalconfig", "globalconfig_name=second", "globalconfig_type=globalconfig_accesslog", `config={"upstream":"gone"}`)

	for path, status := range map[string]int{"/blue": 200, "/blue?status=500": 500, "/gone": 503, "/shut": 503} {
		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: "127.0.0.1:" + httpPort, Host: "shop.test", Path: path, Rate: 20, Connections: 2, Judge: func(e testkit.Exchange) error {
			if e.Status != status {
				return fmt.Errorf("status %d", e.Status)
			}
			return nil
		}})
		DeferCleanup(traffic.Stop)
	}

	// The alerts, without their patience.
	all := readAlerts()
	for _, group := range all.Groups {
		for i := range group.Rules {
			group.Rules[i].For = ""
		}
	}
	rules, err := yaml.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(dir, "alerts.yaml"), rules, 0o600)).To(Succeed())
	prometheus, err = testkit.StartPrometheus(limit(), dir, fmt.Sprintf(`
global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}
rule_files: [%s/alerts.yaml]
scrape_configs:
- {job_name: gatehouse, static_configs: [{targets: [%q]}]}
- {job_name: envoy, metrics_path: /stats/prometheus, static_configs: [{targets: ["127.0.0.1:%s"]}]}
`, dir, strings.TrimPrefix(g.API.URL, "http://"), admin))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(prometheus.Kill)
})

var _ = Describe("The alerts", func() {
	It("are what Prometheus reads", func() {
		promtool, err := testkit.Binary("promtool")
		Expect(err).NotTo(HaveOccurred())
		out, err := exec.CommandContext(limit(), promtool, "check", "rules", files+"alerts.yaml").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
	})

	It("have a page each that says what to do, and docs/runbooks has no other page", func() {
		pages := map[string]bool{"README.md": true}
		index, err := os.ReadFile(runbooks + "README.md")
		Expect(err).NotTo(HaveOccurred())
		for _, group := range readAlerts().Groups {
			for _, a := range group.Rules {
				pages[a.Alert+".md"] = true
				Expect(string(index)).To(ContainSubstring("\n| [" + a.Alert + "](" + a.Alert + ".md) | " + strings.TrimSuffix(a.Annotations["summary"], ".") + " |\n"))
				Expect(a.Annotations["runbook_url"]).To(HaveSuffix("/docs/runbooks/" + a.Alert + ".md"))
				text, err := os.ReadFile(runbooks + a.Alert + ".md")
				Expect(err).NotTo(HaveOccurred())
				Expect(string(text)).To(And(HavePrefix("# "+a.Alert+"\n"+a.Annotations["summary"]+" Severity: "+a.Labels["severity"]+".\n"),
					ContainSubstring("\n## What it means\n"), ContainSubstring("\n## What to look at\n"), ContainSubstring("\n## What to do\n")))
			}
		}
		found, err := os.ReadDir(runbooks)
		Expect(err).NotTo(HaveOccurred())
		for _, f := range found {
			Expect(pages).To(HaveKey(f.Name()))
		}
		Expect(found).To(HaveLen(len(pages)))
	})

	// quiet are the metrics that do not exist until what they are about does: a login, TLS of the xDS port, a limit.
	quiet := []string{"gatehouse_provider_answer_age_seconds", "gatehouse_xds_certificate_expiry_seconds", "envoy_cluster_ratelimit_gatehouse_failure_mode_allowed"}
	for _, group := range readAlerts().Groups {
		for _, a := range group.Rules {
			It(a.Alert+" names metrics that exist", func() {
				_, err := prometheus.Query(limit(), a.Expr)
				Expect(err).NotTo(HaveOccurred())
				names := regexp.MustCompile(`(?:gatehouse|envoy)_[a-z0-9_]+`).FindAllString(regexp.MustCompile(`\{[^}]*\}|by\s*\([^)]*\)|on\s*\([^)]*\)`).ReplaceAllString(a.Expr, ""), -1)
				for _, name := range names {
					if !strings.Contains(strings.Join(quiet, " "), name) {
						values(name)
					}
				}
			})
		}
	}

	It("see entries that an access log service does not read", func() {
		find := func(name string) (parts []string) {
			for _, group := range readAlerts().Groups {
				for _, a := range group.Rules {
					for part := range strings.SplitSeq(a.Expr, " or\n") {
						if a.Alert == name && strings.Contains(part, "grpc_access_log") {
							parts = append(parts, part)
						}
					}
				}
			}
			return parts
		}
		Expect(find("GatehouseTelemetryLost")).To(HaveLen(1))
		Eventually(prometheus.Query).WithContext(limit()).WithArguments(find("GatehouseTelemetryLost")[0]).ShouldNot(BeEmpty())
	})

	It("fire for what is wrong here, and for nothing else", func() {
		firing := func() []string {
			list, err := prometheus.Query(limit(), `ALERTS{alertstate="firing"}`)
			Expect(err).NotTo(HaveOccurred())
			names := map[string]bool{}
			for labels := range list {
				names[regexp.MustCompile(`"alertname":"(\w+)"`).FindStringSubmatch(labels)[1]] = true
			}
			var all []string
			for name := range names {
				all = append(all, name)
			}
			return all
		}
		Eventually(firing).Should(ConsistOf("GatehouseCertificateExpires", "GatehouseErrorRate", "GatehouseServiceErrors", "GatehouseTelemetryLost", "GatehouseUpstreamDown", "GatehouseUpstreamFails"))
	})
})

var _ = Describe("The dashboard", func() {
	for name, d := range dashboards() {
		for _, p := range d.Panels {
			if p.Type == "row" { // a heading
				continue
			}
			It(fmt.Sprintf("%s shows something: %s", name, p.Title), func() {
				Expect(p.Targets).NotTo(BeEmpty())
				for _, t := range p.Targets {
					expression := variables.Replace(t.Expr)
					Expect(expression).NotTo(ContainSubstring("$"))
					for labels := range values(expression) {
						for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(t.LegendFormat, -1) {
							Expect(labels).To(ContainSubstring(`"`+label[1]+`":`), "the legend of %s", expression)
						}
					}
				}
			})
		}

		It(name+" has a place for each panel", func() {
			taken := map[[2]int]string{}
			for _, p := range d.Panels {
				Expect(p.GridPos.X + p.GridPos.W).To(BeNumerically("<=", 24))
				for x := range p.GridPos.W {
					for y := range p.GridPos.H {
						at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
						Expect(taken[at]).To(BeEmpty(), p.Title)
						taken[at] = p.Title
					}
				}
			}
		})
	}

	It("has a name of its own each", func() {
		seen := map[string]bool{}
		for _, d := range dashboards() {
			Expect(seen).NotTo(HaveKey(d.UID))
			seen[d.UID], seen[d.Title] = true, true
		}
		Expect(seen).To(HaveLen(2 * len(dashboards())))
	})
})
