package e2e_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// writeFile writes a file; with atOnce it moves a complete file to its place.
func writeFile(path, content string, atOnce bool) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	if !atOnce {
		Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
		return
	}
	Expect(os.WriteFile(path+".new", []byte(content), 0o600)).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}

func swapLink(target, path string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.Symlink(target, path+".new")).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}

// shown returns the certificate on a new connection for a name, as the pair that contains
// it; empty if there is none.
func (s secured) shown(name string) string {
	conn, err := s.handshake(name)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

// raw returns the leaf of a pair as shown returns it.
func raw(p testkit.Pair) string {
	GinkgoHelper()
	certificate, err := p.TLS()
	Expect(err).NotTo(HaveOccurred())
	return string(certificate.Certificate[0])
}

// steady sends one request after another over one connection, until it is stopped; then no
// request may have failed, and no other connection may have been opened.
func (s secured) steady(name, protocol string) (stop func()) {
	var dials, requests atomic.Int64
	transport := &http.Transport{
		MaxConnsPerHost: 1, ForceAttemptHTTP2: protocol == "h2",
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return s.handshake(name, func(c *tls.Config) { c.NextProtos = []string{protocol} })
		},
	}
	client := &http.Client{Timeout: testkit.Patience, Transport: transport}
	ctx, cancel := context.WithCancel(context.Background())
	var failure atomic.Value
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "https://"+name+"/", nil)
			if err != nil {
				failure.Store(err.Error())
				return
			}
			resp, err := client.Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if err == nil && resp.StatusCode != http.StatusOK {
					err = fmt.Errorf("status %d", resp.StatusCode)
				}
			}
			if err != nil {
				failure.Store(err.Error())
				return
			}
			requests.Add(1)
		}
	})
	Eventually(requests.Load).Should(BeNumerically(">", 10))
	return sync.OnceFunc(func() {
		cancel()
		group.Wait()
		transport.CloseIdleConnections()
		Expect(failure.Load()).To(BeNil(), "%s after %d requests", protocol, requests.Load())
		Expect(dials.Load()).To(Equal(int64(1)), protocol)
	})
}

// wrongFiles returns the messages of a secret's conditions about the directory.
func wrongFiles(api testkit.API, secret string) []string {
	GinkgoHelper()
	var a struct {
		Data map[string][]struct {
			Status struct {
				Conditions []struct{ Code, Message string }
			}
		}
	}
	Expect(json.Unmarshal([]byte(read(api, "/secret/"+secret)), &a)).To(Succeed())
	list := []string{}
	for _, found := range a.Data {
		for _, c := range found[0].Status.Conditions {
			if c.Code == "TLSDirectory" {
				list = append(list, c.Message)
			}
		}
	}
	return list
}

var _ = Describe("--tls-dir", func() {
	// answers returns the status of a read.
	answers := func(s secured, path string) func() int {
		return func() int {
			a, err := s.api.Get(limit(), path)
			Expect(err).NotTo(HaveOccurred())
			return a.Status
		}
	}

	It("serves what certbot writes, keeps the old pair while the new one is invalid, and reports it", func() {
		dir := GinkgoT().TempDir()
		s, _ := secure("--tls-dir", dir, "--log-level", "debug")
		var pairs []testkit.Pair
		renew := func(halves ...string) testkit.Pair {
			GinkgoHelper()
			pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}})
			Expect(err).NotTo(HaveOccurred())
			pairs = append(pairs, pair)
			for half, content := range map[string]string{"fullchain": pair.Cert + s.authority.PEM, "privkey": pair.Key} {
				writeFile(fmt.Sprintf("%s/archive/shop/%s%d.pem", dir, half, len(pairs)), content, false)
			}
			for _, half := range halves {
				swapLink(fmt.Sprintf("../../archive/shop/%s%d.pem", half, len(pairs)), filepath.Join(dir, "live/shop", half+".pem"))
			}
			return pair
		}
		first := renew("fullchain", "privkey")
		Eventually(answers(s, "/secret/shop")).Should(Equal(200))
		s.serve("shop", "shop.test")
		applied(s.api, http.MethodPost, "/service/shop/secret/shop")
		Expect(s.shown("shop.test")).To(Equal(raw(first)))
		plain, h2 := s.steady("shop.test", "http/1.1"), s.steady("shop.test", "h2")
		defer plain()
		defer h2()

		By("a renewal")
		second := renew("fullchain", "privkey")
		Eventually(s.shown).WithArguments("shop.test").Should(Equal(raw(second)))

		By("one half of a renewal")
		third := renew("fullchain")
		Eventually(wrongFiles).WithArguments(s.api, "shop").Should(Equal([]string{
			"the key in " + dir + "/live/shop/privkey.pem does not belong to the certificate in " + dir + "/live/shop/fullchain.pem: " +
				"one of the two has been replaced, and the other half is waited for; the secret stays as it is"}))
		Expect(cliOf(s.Gatehouse).good("status", "-o", "table")).To(MatchRegexp(`/secret/shop +TLSDirectory +the key in `))
		Expect(s.shown("shop.test")).To(Equal(raw(second)))
		swapLink("../../archive/shop/privkey3.pem", filepath.Join(dir, "live/shop/privkey.pem"))
		Eventually(s.shown).WithArguments("shop.test").Should(Equal(raw(third)))
		Eventually(wrongFiles).WithArguments(s.api, "shop").Should(BeEmpty())

		By("files that are truncated, empty, too large, missing, or of another type")
		live := filepath.Join(dir, "live/shop/privkey.pem")
		for want, content := range map[string]string{
			"is cut off, or damaged": third.Key[:len(third.Key)/2], "is empty": "", "has more than 1 MiB": strings.Repeat("x", 1<<20+1),
			"contains no PEM key": "key", "contains a PEM block": s.authority.PEM,
		} {
			writeFile(live, content, true)
			Eventually(wrongFiles).WithArguments(s.api, "shop").Should(ConsistOf(ContainSubstring(want)))
			Expect(s.shown("shop.test")).To(Equal(raw(third)), want)
		}
		Expect(os.Remove(live)).To(Succeed())
		Eventually(wrongFiles).WithArguments(s.api, "shop").Should(ConsistOf(ContainSubstring("has no key beside it")))
		Expect(s.shown("shop.test")).To(Equal(raw(third)))
		writeFile(live, third.Key, true)
		Eventually(wrongFiles).WithArguments(s.api, "shop").Should(BeEmpty())

		By("a pair that has expired")
		ended, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}, NotAfter: time.Now().Add(-time.Hour)})
		Expect(err).NotTo(HaveOccurred())
		chain := filepath.Join(dir, "live/shop/fullchain.pem")
		writeFile(chain, ended.Cert, true)
		writeFile(live, ended.Key, true)
		Eventually(wrongFiles).WithArguments(s.api, "shop").Should(ConsistOf(And(HavePrefix(chain+" with "+live+" is refused: "), ContainSubstring("its certificate expired on"))))
		Expect(s.shown("shop.test")).To(Equal(raw(third)))
		writeFile(chain, third.Cert+s.authority.PEM, true)
		writeFile(live, third.Key, true)
		Eventually(wrongFiles).WithArguments(s.api, "shop").Should(BeEmpty())

		By("what somebody else writes")
		other, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}})
		Expect(err).NotTo(HaveOccurred())
		code, _, warned := cliOf(s.Gatehouse).run("secret", "set", "shop", "--cert", file("c.pem", other.Cert), "--key", file("k.pem", other.Key), "--wait")
		Expect(code).To(BeZero(), warned)
		Expect(warned).To(Equal("warning: /secret/shop comes from the files in " + dir + " (--tls-dir), which replace what is written here; change the files\n"))
		Eventually(s.shown).WithArguments("shop.test").Should(Equal(raw(third)))

		By("without losing a connection or a request, and with one write for each change")
		plain()
		h2()
		Eventually(func() []string { return actors(s.api) }).Should(Equal([]string{"tls-dir", "tls-dir", "tls-dir", "local", "tls-dir"}))
		for _, pair := range append(pairs, other) {
			marker := strings.Split(pair.Key, "\n")[1][:32]
			Expect(s.Stderr.String() + s.Stdout.String()).NotTo(ContainSubstring(marker))
		}
		Expect(s.Records("ignored in the directory of certificates")).NotTo(BeEmpty()) // archive/
	})

	It("serves what Kubernetes mounts, from the start and after a restart, and writes nothing twice", func() {
		dir, data := GinkgoT().TempDir(), GinkgoT().TempDir()
		s, _ := secure("--tls-dir", dir, "--data-dir", data)
		mount := func(version string) testkit.Pair {
			GinkgoHelper()
			pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}})
			Expect(err).NotTo(HaveOccurred())
			writeFile(filepath.Join(dir, "shop", ".."+version, "tls.crt"), pair.Cert, false)
			writeFile(filepath.Join(dir, "shop", ".."+version, "tls.key"), pair.Key, false)
			swapLink(".."+version, filepath.Join(dir, "shop/..data"))
			for _, half := range []string{"tls.crt", "tls.key"} {
				if _, err := os.Lstat(filepath.Join(dir, "shop", half)); err != nil {
					swapLink("..data/"+half, filepath.Join(dir, "shop", half))
				}
			}
			return pair
		}
		mount("1")
		Eventually(answers(s, "/secret/shop")).Should(Equal(200))
		s.serve("shop", "shop.test")
		applied(s.api, http.MethodPost, "/service/shop/secret/shop")
		second := mount("2")
		Expect(os.RemoveAll(filepath.Join(dir, "shop/..1"))).To(Succeed())
		Eventually(s.shown).WithArguments("shop.test").Should(Equal(raw(second)))
		Eventually(func() []string { return actors(s.api) }).Should(Equal([]string{"tls-dir", "tls-dir"}))

		By("a restart, with a renewal meanwhile")
		Expect(s.Stop(limit())).To(BeZero())
		third := mount("3")
		port := freePort()
		g := start(nil, "standalone", "--data-dir", data, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
			"--http-port", strconv.Itoa(port), "--https-port", strconv.Itoa(s.httpsPort), "--tls-dir", dir)
		Eventually(s.shown).WithArguments("shop.test").Should(Equal(raw(third)))
		Eventually(func() []string { return actors(g.API) }).Should(Equal([]string{"tls-dir", "tls-dir", "tls-dir"}))
	})

	It("is written once by the control planes that share a database and the directory", func() {
		dir, keys, database := GinkgoT().TempDir(), filepath.Join(GinkgoT().TempDir(), "secret.key"), startPostgres().URL("gatehouse")
		var planes []*testkit.Gatehouse
		for range 2 {
			planes = append(planes, serve("--database-url", database, "--secret-key-file", keys, "--tls-dir", dir))
		}
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		const rotations = 10
		for i := range rotations {
			pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test"}})
			Expect(err).NotTo(HaveOccurred())
			for half, content := range map[string]string{"crt": pair.Cert, "key": pair.Key} {
				writeFile(filepath.Join(dir, "shop."+half), content, i%2 == 0)
			}
			fingerprint := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(raw(pair))))
			for _, p := range planes {
				Eventually(func() string {
					a, err := p.API.Get(limit(), "/secret/shop")
					Expect(err).NotTo(HaveOccurred())
					return a.Body
				}).Should(ContainSubstring(fingerprint))
				Eventually(wrongFiles).WithArguments(p.API, "shop").Should(BeEmpty())
			}
		}
		Expect(actors(planes[0].API)).To(Equal(slices.Repeat([]string{"tls-dir"}, rotations)))
	})

	It("must be a directory", func() {
		Expect(refuses(1, nil, "serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--tls-dir", "/nonexistent/certs")).To(Equal(
			"gatehouse: reading --tls-dir /nonexistent/certs: no such file or directory: it must be a directory that the user that runs the program can read"))
	})
})

// actors returns who changed the secret shop, the first first.
func actors(api testkit.API) []string {
	GinkgoHelper()
	var a struct {
		Data map[string][]struct{ Actor, Request string }
	}
	Expect(json.Unmarshal([]byte(read(api, "/revision?limit=1000")), &a)).To(Succeed())
	var list []string
	for _, revisions := range a.Data {
		for _, r := range revisions {
			if strings.HasSuffix(r.Request, " /secret/shop") && !strings.Contains(r.Request, "service") {
				list = append([]string{r.Actor}, list...)
			}
		}
	}
	return list
}

var _ = Describe("gatehouse secret set", func() {
	It("stores a certificate, replaces it, and keeps it if the new one is invalid", func() {
		s, _ := secure()
		c := cliOf(s.Gatehouse)
		s.serve("shop", "shop.test")
		var first, second testkit.Pair
		for _, p := range []*testkit.Pair{&first, &second} {
			var err error
			*p, err = s.authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test", "*.shop.test"}})
			Expect(err).NotTo(HaveOccurred())
		}
		set := func(cert, key string) (int, string, string) {
			return c.run("secret", "set", "shop", "--cert", file("c.pem", cert), "--key", file("k.pem", key), "--wait", "-o", "table")
		}
		code, out, errOut := set(first.Cert, first.Key)
		Expect(code).To(BeZero(), errOut)
		Expect(out).To(MatchRegexp(`^secret shop is created \(revision \d+\)\n  for      shop.test, \*.shop.test\n  issuer   CN=test\n  ends     in \d+ minutes \(`))
		Expect(c.good("attach", "secret/shop", "service/shop", "--wait", "-o", "table")).To(ContainSubstring("is attached"))
		Expect(s.shown("shop.test")).To(Equal(raw(first)))

		code, out, errOut = set(second.Cert, second.Key)
		Expect(code).To(BeZero(), errOut)
		Expect(out).To(ContainSubstring("secret shop is replaced"))
		Expect(out).To(HaveSuffix("  used by  shop\n"))
		Expect(s.shown("shop.test")).To(Equal(raw(second)))

		code, out, errOut = set(first.Cert, second.Key)
		Expect(code).To(Equal(1))
		Expect(out).To(BeEmpty())
		Expect(errOut).To(ContainSubstring("Secret_key"))
		Expect(errOut).NotTo(ContainSubstring("PRIVATE KEY"))
		Expect(s.shown("shop.test")).To(Equal(raw(second)))
		Expect(c.good("get", "secrets", "--expires-before", "0d")).To(Equal("[]\n"))
		Expect(c.good("get", "secrets", "--expires-before", "30d", "-o", "table")).To(MatchRegexp(`shop +tls +.*in \d+ minutes \(.*\) +shop\n`))
	})
})
