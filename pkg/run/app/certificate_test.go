package app_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// load sends requests, one after the other, until the context ends.
type load struct {
	url       string
	keepAlive bool

	answered atomic.Int64
	// serial is the number of the certificate of the last answer.
	serial atomic.Int64
	mu     sync.Mutex
	failed []string
}

func (l *load) run(ctx context.Context) {
	transport := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // self-signed
	}
	var client doer = &http.Client{Timeout: testkit.Patience, Transport: transport}
	if l.keepAlive {
		client = &oneConnection{}
	}
	for ctx.Err() == nil {
		err := l.send(ctx, client)
		if err != nil && ctx.Err() == nil {
			l.mu.Lock()
			l.failed = append(l.failed, err.Error())
			l.mu.Unlock()
		}
	}
	if one, ok := client.(*oneConnection); ok && one.conn != nil {
		_ = one.conn.Close()
	}
}

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// oneConnection sends all requests on one connection. A transport of net/http opens a
// second one when the machine is busy.
type oneConnection struct {
	conn *tls.Conn
	from *bufio.Reader
}

func (o *oneConnection) Do(req *http.Request) (*http.Response, error) {
	if o.conn == nil {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // self-signed
		conn, err := testkit.Bounded(dialer.DialContext(req.Context(), "tcp", req.URL.Host))
		if err != nil {
			return nil, err
		}
		o.conn = conn.(*tls.Conn)
		o.from = bufio.NewReader(conn)
	}
	if err := req.Write(o.conn); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(o.from, req)
	if err == nil {
		state := o.conn.ConnectionState()
		res.TLS = &state
	}
	return res, err
}

func (l *load) send(ctx context.Context, client doer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	if err == nil {
		l.serial.Store(res.TLS.PeerCertificates[0].SerialNumber.Int64())
		l.answered.Add(1)
	}
	return err
}

func (l *load) failures() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

var _ = Describe("A new certificate of the API under load", func() {
	It("is served to new connections, and no request fails", func() {
		dir := GinkgoT().TempDir()
		certFile, keyFile := filepath.Join(dir, "api.crt"), filepath.Join(dir, "api.key")
		write := func(path string, content []byte) {
			GinkgoHelper()
			Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
		}
		cert, key := keyPair(1)
		write(certFile, cert)
		write(keyFile, key)
		r := serve(settings(dir, map[string]string{"api-tls-cert": certFile, "api-tls-key": keyFile}))
		url := "https://127.0.0.1:" + r.port() + "/health"

		ctx, cancel := context.WithCancel(context.Background())
		short, long := &load{url: url}, &load{url: url, keepAlive: true}
		var clients sync.WaitGroup
		for _, l := range []*load{short, long} {
			clients.Go(func() { l.run(ctx) })
		}
		DeferCleanup(func() {
			cancel()
			clients.Wait()
		})
		some := func(l *load) {
			GinkgoHelper()
			Eventually(l.answered.Load).Should(BeNumerically(">", l.answered.Load()+5))
		}
		// served waits until new connections get the certificate, and for some more
		// requests.
		served := func(serial int64) {
			GinkgoHelper()
			Eventually(short.serial.Load).Should(Equal(serial))
			some(short)
			some(long)
		}
		served(1)

		By("writing over the files, one after the other and in parts")
		cert, key = keyPair(2)
		write(certFile, cert)
		some(short)
		write(keyFile, key[:len(key)/2])
		Eventually(func() string { return string(r.log.Contents()) }).Should(
			ContainSubstring(`msg="new certificate of the api not used, the old one stays"`))
		Expect(short.serial.Load()).To(Equal(int64(1)))
		write(keyFile, key)
		served(2)

		By("renaming new files over them")
		cert, key = keyPair(3)
		write(certFile+".new", cert)
		write(keyFile+".new", key)
		Expect(os.Rename(keyFile+".new", keyFile)).To(Succeed())
		Expect(os.Rename(certFile+".new", certFile)).To(Succeed())
		served(3)

		cancel()
		clients.Wait()
		for _, l := range []*load{short, long} {
			Expect(l.failures()).To(BeEmpty())
		}
		Expect(long.serial.Load()).To(Equal(int64(1)), "an old connection stays as it is")
	})
})
