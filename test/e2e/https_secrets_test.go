package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// keyMarkers returns texts, one of which is found wherever a private key is written:
// its secret number as bytes or in hexadecimal, and pieces of its base64, as in PEM,
// and of the base64 of its PEM, however they are aligned.
func keyMarkers(pair testkit.Pair) []string {
	GinkgoHelper()
	block, _ := pem.Decode([]byte(pair.Key))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	var number []byte
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		number, err = k.Bytes()
		Expect(err).NotTo(HaveOccurred())
	case *rsa.PrivateKey:
		number = k.Primes[0].Bytes()
	}
	pieces := func(text []byte) (list []string) {
		const size = 12 // bytes; a line of PEM has 48, so that at most one of two pieces is cut
		for _, i := range []int{0, 1, 2, size, size + 1, size + 2} {
			list = append(list, base64.StdEncoding.EncodeToString(text[i:i+size]), base64.URLEncoding.EncodeToString(text[i:i+size]))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	markers := append(pieces(number), string(number), hex.EncodeToString(number), strings.ToUpper(hex.EncodeToString(number)))
	for line := range strings.Lines(pair.Key) {
		line = strings.TrimSpace(line)
		if len(line) == 64 && slices.ContainsFunc(markers, func(m string) bool { return strings.Contains(line, m) }) {
			markers = append(append(markers, line), pieces([]byte(line))...)
		}
	}
	return markers
}

// leaks lists the places in which a text has a marker.
func leaks(places map[string]string, markers []string) (list []string) {
	for _, place := range slices.Sorted(maps.Keys(places)) {
		for _, m := range markers {
			if i := strings.Index(places[place], m); i >= 0 {
				list = append(list, fmt.Sprintf("%s: %.200q", place, places[place][max(0, i-60):]))
				break
			}
		}
	}
	return list
}

// readsOf returns the paths of the API that can be read and end, with the names of
// objects.
func readsOf(api testkit.API, names map[string][]string) (paths []string) {
	GinkgoHelper()
	for _, match := range regexp.MustCompile(`(?m)^  (/\S*):\n(?:    (?:parameters:|  ).*\n)*    get:`).FindAllStringSubmatch(read(api, "/openapi.yaml"), -1) {
		list := []string{match[1]}
		for parameter, values := range names {
			var filled []string
			for _, path := range list {
				if !strings.Contains(path, "{"+parameter+"}") {
					filled = append(filled, path)
					continue
				}
				for _, v := range values {
					filled = append(filled, strings.ReplaceAll(path, "{"+parameter+"}", v))
				}
			}
			list = filled
		}
		paths = append(paths, list...)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "/events" })
}

// answersOf returns the answers to reads of these paths, as JSON and as YAML.
func answersOf(api testkit.API, paths []string) map[string]string {
	GinkgoHelper()
	answers := map[string]string{}
	for _, path := range paths {
		for _, accept := range []string{"application/json", "application/yaml"} {
			req, err := http.NewRequestWithContext(limit(), http.MethodGet, api.URL+path, http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			req.Header.Set("Accept", accept)
			a, err := api.Send(req)
			Expect(err).NotTo(HaveOccurred())
			answers["GET "+path+" as "+accept] = a.Body
		}
	}
	return answers
}

// processTexts returns the arguments and the environment of the program.
func processTexts(g *testkit.Gatehouse) map[string]string {
	GinkgoHelper()
	texts := map[string]string{}
	for _, file := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", g.Pid(), file))
		Expect(err).NotTo(HaveOccurred())
		texts["process "+file] = string(text)
	}
	return texts
}

// eventsOf collects the output of GET /events: told returns what has come so far, and stop what came until it.
func eventsOf(api testkit.API) (told, stop func() string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL+"/events", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := (&http.Transport{}).RoundTrip(req)
	Expect(err).NotTo(HaveOccurred())
	text := &testkit.Output{}
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = io.Copy(text, resp.Body) // until cancel
		_ = resp.Body.Close()
	})
	return text.String, func() string {
		cancel()
		group.Wait()
		return text.String()
	}
}

// filesIn returns the files below a directory.
func filesIn(dir string) map[string]string {
	GinkgoHelper()
	files := map[string]string{}
	Expect(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		files["file "+path] = string(text)
		return err
	})).To(Succeed())
	return files
}

// dumpOf returns the contents of the tables of a database, as text.
func dumpOf(url string) map[string]string {
	GinkgoHelper()
	conn, err := pgx.Connect(limit(), url)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(conn.Close(limit())).To(Succeed()) }()
	rows, err := conn.Query(limit(), "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
	Expect(err).NotTo(HaveOccurred())
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	Expect(err).NotTo(HaveOccurred())
	Expect(tables).NotTo(BeEmpty())
	dump := map[string]string{}
	for _, t := range tables {
		rows, err := conn.Query(limit(), fmt.Sprintf("SELECT t::text FROM %q t", t))
		Expect(err).NotTo(HaveOccurred())
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		Expect(err).NotTo(HaveOccurred())
		dump["table "+t] = strings.Join(lines, "\n")
	}
	return dump
}

// adminTexts returns what an Envoy's admin endpoint shows, by path.
func adminTexts(what string, admin testkit.API) map[string]string {
	GinkgoHelper()
	texts := map[string]string{}
	for _, path := range []string{
		"/config_dump", "/config_dump?include_eds", "/config_dump?resource=dynamic_active_secrets", "/config_dump?resource=dynamic_warming_secrets",
		"/config_dump?resource=bootstrap", "/certs", "/listeners?format=json", "/clusters?format=json", "/init_dump", "/stats", "/server_info",
		"/memory", "/runtime", "/contention", "/help", "/",
	} {
		a, err := admin.Get(limit(), path)
		Expect(err).NotTo(HaveOccurred())
		texts[what+" "+path] = a.Body
	}
	return texts
}

// secretive has pairs in every place that can have one, and writes that are refused.
type secretive struct {
	secured
	pairs   []testkit.Pair
	answers map[string]string
}

func (s *secretive) pair(o testkit.CertificateOptions) testkit.Pair {
	GinkgoHelper()
	pair, err := s.authority.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	s.pairs = append(s.pairs, pair)
	return pair
}

// call makes a call and keeps the answer.
func (s *secretive) call(status int, method, path, contentType, body string) {
	GinkgoHelper()
	a, err := s.api.Do(limit(), method, path, contentType, body)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(status), "%s %s: %s", method, path, a.Body)
	s.answers[fmt.Sprintf("answer %d to %s %s", len(s.answers), method, path)] = a.Body + fmt.Sprint(a.Header)
}

func (s *secretive) form(status int, method, path string, fields ...string) {
	GinkgoHelper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	s.call(status, method, path, formType, form.Encode())
}

func (s *secretive) write(tls *testkit.Backend) {
	GinkgoHelper()
	post := func(name string, p testkit.Pair) {
		GinkgoHelper()
		s.form(201, "POST", "/secret", "Secret_name", name, "Secret_cert", p.Cert, "Secret_key", p.Key)
	}
	options := testkit.CertificateOptions{Names: []string{"shop.test"}}
	addService(s.api, "shop", "shop.test", "blue")
	s.form(201, "POST", "/proxy/gw/service/shop")
	post("shop", s.pair(options))
	s.form(201, "POST", "/service/shop/secret/shop?wait=applied")
	status, _, _ := s.ask("shop.test", "shop.test")
	Expect(status).To(Equal(200))
	rotated := s.pair(options)
	s.form(200, "PATCH", "/secret/shop?wait=applied", "Secret_cert", rotated.Cert, "Secret_key", rotated.Key)
	s.expectShown("shop.test", rotated)

	By("on chains of their own, for upstreams, and in a document")
	post("shop-rsa", s.pair(testkit.CertificateOptions{Names: []string{"shop.test"}, RSA: true}))
	s.form(201, "POST", "/service/shop/secret/shop-rsa?wait=applied")
	post("client", s.pair(testkit.CertificateOptions{Client: true}))
	s.form(201, "POST", "/secret", "Secret_name", "ca", "Secret_cert", tls.Certificate())
	s.form(201, "POST", "/upstream", "Upstream_name", "tls", "Upstream_ip", tls.IP, "Upstream_port", strconv.Itoa(tls.Port), "Upstream_protocol", "tls",
		"Upstream_validation_cacertificate", "ca", "Upstream_validation_subjectname", "example.com", "Upstream_client_certificate", "client")
	s.form(201, "POST", "/service/shop/route", "Route_Name", "tls", "Route_prefix", "/tls")
	s.form(201, "POST", "/service/shop/route/tls/upstream/tls?wait=applied")
	conn, err := s.handshake("shop.test")
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.Close()).To(Succeed())
	wide := s.pair(testkit.CertificateOptions{Names: []string{"*.wide.test"}})
	text, err := json.Marshal(map[string]any{
		"version": 1, "secrets": []map[string]any{{"secret_name": "wide", "secret_cert": wide.Cert, "secret_key": wide.Key}},
		"services": []map[string]any{{
			"service_name": "wide", "fqdn": "*.wide.test", "secrets": []string{"wide"},
			"routes": []map[string]any{{"route_name": "root", "route_prefix": "/", "upstreams": []string{"blue"}}},
		}},
	})
	Expect(err).NotTo(HaveOccurred())
	s.call(200, "PUT", "/config", "application/json", string(text))
	s.form(201, "POST", "/proxy/gw/service/wide?wait=applied")
	s.expectShown("any.wide.test", wide)

	By("refused, tried, and deleted")
	other := s.pair(options)
	s.form(400, "POST", "/secret", "Secret_name", "mixed", "Secret_cert", rotated.Cert, "Secret_key", other.Key)
	s.form(400, "PATCH", "/secret/shop", "Secret_key", other.Key)
	s.form(400, "POST", "/secret", "Secret_name", "swapped", "Secret_cert", other.Key, "Secret_key", other.Cert)
	s.form(400, "POST", "/secret", "Secret_name", "cut", "Secret_cert", other.Cert, "Secret_key", other.Key[:len(other.Key)-60])
	s.form(200, "POST", "/secret?dry_run=true", "Secret_name", "dry", "Secret_cert", other.Cert, "Secret_key", other.Key)
	s.call(400, "PUT", "/config", "application/json", strings.ReplaceAll(string(text), `"secret_name":"wide"`, `"secret_name":7`))
	gone := s.pair(options)
	post("gone", gone)
	s.form(200, "DELETE", "/secret/gone")
	s.form(200, "POST", "/revision/1/rollback?dry_run=true")
}

// searched runs a gateway with the most verbose settings. base and temp are where it
// writes files, and dump is the content of its database, if that is not in one of its
// files.
func searched(onPostgres bool, args ...string) (s *secretive, base, temp string, dump func() map[string]string) {
	GinkgoHelper()
	base, temp, dump = GinkgoT().TempDir(), GinkgoT().TempDir(), func() map[string]string { return nil }
	port, https := freePort(), freePort()
	args = append([]string{
		"standalone", "--log-level", "debug", "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--data-dir", base,
		"--admin-addr", "127.0.0.1:0", "--http-port", strconv.Itoa(port), "--https-port", strconv.Itoa(https),
	}, args...)
	if onPostgres {
		base = GinkgoT().TempDir()
		server, err := postgres.Start(limit(), base)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		Expect(server.CreateDatabase(limit(), "gatehouse")).To(Succeed())
		args = append(args, "--database-url", server.URL("gatehouse"))
		dump = func() map[string]string {
			GinkgoHelper()
			return dumpOf(server.URL("gatehouse"))
		}
	}
	g := start([]string{"TMPDIR=" + temp}, args...)
	authority, err := testkit.NewAuthority("test")
	Expect(err).NotTo(HaveOccurred())
	addUpstream(g.API, backend("blue"))
	post(g.API, "/proxy", "Name=gw")
	return &secretive{secured{gateway{g.API, port}, g, https, authority}, nil, map[string]string{}}, base, temp, dump
}

var _ = DescribeTable("No private key can be read anywhere", func(onPostgres bool) {
	s, base, temp, dump := searched(onPostgres)
	g := s.Gatehouse
	_, stopEvents := eventsOf(g.API)
	full := adminOf(g)
	a, err := full.Post(limit(), "/logging?level=trace")
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(200), a.Body)
	s.write(backendWith("tls", testkit.BackendOptions{Protocol: "tls"}))

	places := maps.Clone(s.answers)
	paths := readsOf(g.API, map[string][]string{
		"upstream": {"blue", "tls"}, "service": {"shop", "wide"}, "route": {"root", "tls"}, "proxy": {"gw"}, "filter": {"x"}, "globalconfig": {"x"},
		"secret": {"shop", "shop-rsa", "client", "wide", "gone"}, "token": {"x"}, "asset": {"x"}, "revision": revisionsOf(g.API),
	})
	Expect(len(paths)).To(BeNumerically(">", 100))
	maps.Copy(places, answersOf(g.API, append(paths,
		"/proxy/gw/explain?url=https://shop.test/tls", "/proxy/gw/explain?url=https://any.wide.test/", "/secret?status=true", "/service?status=true",
		"/proxy/gw/xds?type=secret", "/proxy/gw/xds?type=listener", "/proxy/gw/xds?type=cluster",
	)))
	maps.Copy(places, adminTexts("admin socket", full))
	maps.Copy(places, adminTexts("admin port", g.Admin))
	Expect(places["admin socket /config_dump?resource=dynamic_active_secrets"]).To(And(ContainSubstring("[redacted]"), ContainSubstring(`"any.wide.test"`)))
	maps.Copy(places, filesIn(base))
	maps.Copy(places, filesIn(temp))
	maps.Copy(places, dump())
	maps.Copy(places, processTexts(g))
	places["events"] = stopEvents()
	Expect(places["events"]).To(ContainSubstring("revision"))
	places["log"], places["access log"] = g.Stderr.String(), g.Stdout.String()
	Expect(places["log"]).To(And(ContainSubstring(`"level":"DEBUG"`), ContainSubstring("DeltaDiscoveryResponse")))
	Expect(g.Stop(limit())).To(BeZero())
	for place, text := range filesIn(base) {
		places[place+" at the end"] = text
	}
	AddReportEntry("searched", fmt.Sprintf("%d places for %d keys", len(places), len(s.pairs)))
	found := []string{}
	for _, pair := range s.pairs {
		markers := keyMarkers(pair)
		Expect(leaks(map[string]string{
			"pem": pair.Key, "json": fmt.Sprintf("%q", pair.Key), "base64": "xy" + base64.StdEncoding.EncodeToString([]byte("x"+pair.Key)),
			"form": strings.ReplaceAll(pair.Key, "\n", ""),
		}, markers)).To(HaveLen(4), "the search finds a key where there is one")
		found = append(found, leaks(places, markers)...)
	}
	Expect(found).To(BeEmpty())
},
	Entry("with SQLite", false),
	Entry("with Postgres", true),
)

// revisionsOf returns the numbers of all revisions.
func revisionsOf(api testkit.API) (numbers []string) {
	GinkgoHelper()
	for _, match := range regexp.MustCompile(`"revision":(\d+)`).FindAllStringSubmatch(read(api, "/revision?limit=1000"), -1) {
		numbers = append(numbers, match[1])
	}
	Expect(numbers).NotTo(BeEmpty())
	return numbers
}
