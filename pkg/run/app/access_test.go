package app_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const adminToken = "bootstrap-token-of-a-spec"

// settings returns the settings of a server with its data in dir.
func settings(dir string, flags map[string]string, env ...string) config.Config {
	GinkgoHelper()
	all := map[string]string{"api-addr": "127.0.0.1:0", "xds-addr": "127.0.0.1:0", "data-dir": dir}
	for name, text := range flags {
		all[name] = text
	}
	cfg, _, err := config.Load(config.Serve, all, env, os.ReadFile)
	Expect(err).NotTo(HaveOccurred())
	return cfg
}

// running is a server that runs until the spec ends.
type running struct {
	log  *gbytes.Buffer
	done chan error
}

func serve(cfg config.Config) *running {
	r, _ := serveUntil(cfg)
	return r
}

// serveUntil is serve with a function that stops the server earlier.
func serveUntil(cfg config.Config) (*running, context.CancelFunc) {
	r := &running{log: gbytes.NewBuffer(), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		r.done <- app.Serve(ctx, cfg, environment(r.log))
		close(r.done)
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(r.done).Should(BeClosed())
	})
	return r, cancel
}

// Every server that a spec starts has stopped when the spec ends. All of its servers
// are checked together: one may still start goroutines when it answers, while the next
// one runs.
var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
})

func environment(log *gbytes.Buffer) app.Env {
	return app.Env{Stdout: log, Stderr: io.Discard, Log: slog.New(slog.NewTextHandler(log, nil)), Version: "test"}
}

// port waits for the server and returns the port of its API.
func (r *running) port() string {
	GinkgoHelper()
	up := regexp.MustCompile(`msg="gatehouse is up" api=https?://\S+:(\d+) `)
	Eventually(func() string { return string(r.log.Contents()) }).Should(MatchRegexp(up.String()))
	return up.FindStringSubmatch(string(r.log.Contents()))[1]
}

// status returns the status of a GET, with a token unless it is empty.
func status(url, token string) int {
	GinkgoHelper()
	req, err := http.NewRequest("GET", url, nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(res.Body.Close()).To(Succeed())
	return res.StatusCode
}

// token runs a command of gatehouse token on dir and returns what it prints.
func token(dir string, work func(context.Context, config.Config, app.Env) error) string {
	GinkgoHelper()
	cfg, _, err := config.Load(config.Token, map[string]string{"data-dir": dir}, nil, os.ReadFile)
	Expect(err).NotTo(HaveOccurred())
	out := gbytes.NewBuffer()
	Expect(work(context.Background(), cfg, environment(out))).To(Succeed())
	var lines []string
	for line := range strings.Lines(string(out.Contents())) {
		if !strings.HasPrefix(line, "time=") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func createToken(dir, name, role string) string {
	GinkgoHelper()
	return strings.TrimSpace(token(dir, func(ctx context.Context, cfg config.Config, env app.Env) error {
		return app.CreateToken(ctx, cfg, env, app.NewToken{Name: name, Role: role}, false)
	}))
}

var _ = Describe("An API without a token", func() {
	It("is open on loopback, and says so", func() {
		r := serve(settings(GinkgoT().TempDir(), nil))
		Expect(status("http://127.0.0.1:"+r.port()+"/service", "")).To(Equal(200))
		Expect(r.log).To(gbytes.Say(`level=INFO msg="the api needs no token, because only this machine reaches it" api=127.0.0.1:\d+`))
	})

	It("is closed with an identity provider, and starts anywhere", func() {
		for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
			r := serve(settings(GinkgoT().TempDir(), map[string]string{
				"api-addr": addr, "insecure-api": "true", "console-oidc-issuer": "https://id.example.com", "console-oidc-client-id": "x",
				"console-oidc-groups": "platform=admin",
			}, "GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET=hunter2"))
			Expect(status("http://127.0.0.1:"+r.port()+"/service", "")).To(Equal(401), addr)
		}
	})

	It("does not start elsewhere", func() {
		dir := GinkgoT().TempDir()
		r := serve(settings(dir, map[string]string{"api-addr": "0.0.0.0:0"}))
		Eventually(r.done).Should(Receive(MatchError("--api-addr 0.0.0.0:0 is not a loopback address and the REST API has no token, " +
			"so everybody who reaches it could change everything: give a token with --api-admin-token-file, " +
			"make one with gatehouse token create NAME --role admin --data-dir " + dir + ", or allow it with --insecure-api")))
	})

	It("is open elsewhere on request, with a warning", func() {
		r := serve(settings(GinkgoT().TempDir(), map[string]string{"api-addr": "0.0.0.0:0", "insecure-api": "true"}))
		Expect(status("http://127.0.0.1:"+r.port()+"/service", "")).To(Equal(200))
		Expect(r.log).To(gbytes.Say(`level=WARN msg="everybody who reaches the api can use it without a token"`))
	})
})

var _ = Describe("An API with a token", func() {
	It("from the settings starts anywhere", func() {
		r := serve(settings(GinkgoT().TempDir(), map[string]string{"api-addr": "0.0.0.0:0"}, "GATEHOUSE_API_ADMIN_TOKEN="+adminToken))
		url := "http://127.0.0.1:" + r.port() + "/service"
		Expect(status(url, "")).To(Equal(401))
		Expect(status(url, adminToken)).To(Equal(200))
		Expect(string(r.log.Contents())).To(And(
			ContainSubstring(`level=WARN msg="tokens reach the api unencrypted: give --api-tls-cert, or let a proxy do TLS"`),
			Not(ContainSubstring(adminToken))))
	})

	It("from the database starts anywhere, and stays closed when the token is revoked", func() {
		dir := GinkgoT().TempDir()
		Eventually(serve(settings(dir, map[string]string{"api-addr": "0.0.0.0:0"})).done).Should(Receive(HaveOccurred()), "which makes the database")
		made := createToken(dir, "ann", "admin")
		Expect(made).To(MatchRegexp(`^gh_[A-Za-z0-9_-]{43}$`))
		r := serve(settings(dir, map[string]string{"api-addr": "0.0.0.0:0"}))
		url := "http://127.0.0.1:" + r.port() + "/service"
		Expect(status(url, "")).To(Equal(401))
		Expect(status(url, made)).To(Equal(200))
		Expect(token(dir, func(ctx context.Context, cfg config.Config, env app.Env) error {
			list, err := app.ListTokens(ctx, cfg, env, app.TokenOwner{})
			Expect(list).To(HaveExactElements(And(HaveField("Name", "ann"), HaveField("Role", "admin"), HaveField("LastUsedTS", Not(BeNil())))))
			return err
		})).To(BeEmpty())
		Expect(token(dir, func(ctx context.Context, cfg config.Config, env app.Env) error {
			return app.RevokeToken(ctx, cfg, env, app.TokenOwner{}, "ann")
		})).To(Equal("token \"ann\" is revoked\n"))
		Expect(status(url, made)).To(Equal(401))
		Expect(status(url, "")).To(Equal(401))
	})

	It("refuses a bad name or role at the command line", func() {
		cfg, _, err := config.Load(config.Token, map[string]string{"data-dir": GinkgoT().TempDir()}, nil, os.ReadFile)
		Expect(err).NotTo(HaveOccurred())
		Expect(app.CreateToken(context.Background(), cfg, environment(gbytes.NewBuffer()), app.NewToken{Name: "a b", Role: "root"}, false)).To(MatchError(
			`the token cannot be created: Token_name: "a b" may contain only the characters A-Z a-z 0-9 . _ -; Token_role: "root" is not one of admin, editor, viewer`))
	})
})

// keyPair makes a certificate for 127.0.0.1 with a serial number.
func keyPair(serial int64) (cert, key []byte) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	Expect(err).NotTo(HaveOccurred())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

var _ = Describe("TLS of the API", func() {
	It("follows its files, and keeps the certificate when they become invalid", func() {
		dir := GinkgoT().TempDir()
		certFile, keyFile := filepath.Join(dir, "api.crt"), filepath.Join(dir, "api.key")
		write := func(cert, key []byte) {
			GinkgoHelper()
			Expect(os.WriteFile(certFile, cert, 0o600)).To(Succeed())
			Expect(os.WriteFile(keyFile, key, 0o600)).To(Succeed())
		}
		write(keyPair(1))
		r := serve(settings(dir, map[string]string{"api-tls-cert": certFile, "api-tls-key": keyFile}))
		port := r.port()
		serial := func() int64 {
			conn, err := testkit.Bounded(tls.DialWithDialer(testkit.Dialer(), "tcp", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true})) //nolint:gosec // self-signed
			if err != nil {
				return -1
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		}
		Expect(serial()).To(Equal(int64(1)))

		cert, _ := keyPair(2)
		write(cert, []byte("broken"))
		Eventually(func() string { serial(); return string(r.log.Contents()) }).Should(
			ContainSubstring(`level=WARN msg="new certificate of the api not used, the old one stays"`))
		Expect(serial()).To(Equal(int64(1)))
		Expect(os.Remove(keyFile)).To(Succeed())
		Expect(serial()).To(Equal(int64(1)))

		write(keyPair(3))
		Eventually(serial).Should(Equal(int64(3)))
		Expect(bytes.Count(r.log.Contents(), []byte("PRIVATE"))).To(BeZero())
	})

	It("does not start without its files", func() {
		r := serve(settings(GinkgoT().TempDir(), map[string]string{"api-tls-cert": "/not/there.crt", "api-tls-key": "/not/there.key"}))
		Eventually(r.done).Should(Receive(MatchError("reading --api-tls-cert /not/there.crt and --api-tls-key /not/there.key: " +
			"open /not/there.crt: no such file or directory: the user that runs the program needs to read both")))
	})
})
