package rest_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func TestREST(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "REST API")
}

// sealer has the key of every database here.
var sealer model.Sealer

var _ = BeforeSuite(func() {
	var err error
	sealer, _, err = seal.OpenOrCreate(filepath.Join(GinkgoT().TempDir(), "seal.key"))
	Expect(err).NotTo(HaveOccurred())
})

func openStore(url string) *sqlstore.Store {
	GinkgoHelper()
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{
		URL: url, Sealer: sealer,
		Now: func() time.Time { return time.Date(2026, 11, 21, 8, 7, 39, 123456000, time.UTC) },
	})
	Expect(err).NotTo(HaveOccurred())
	return db
}

// timestamp is the clock of every store here, as the API shows it.
const timestamp = "2026-11-21T08:07:39.123456+00:00"

// api is a running API over a database of its own.
type api struct {
	url    string
	store  store.Store
	word   string // the schema word
	file   string // of the database
	client *http.Client
	log    *lockedBuffer
}

type answer struct {
	status int
	header http.Header
	body   string
}

// startAPI serves the API over HTTP. What it logs may hold no error and no
// stack trace.
func startAPI(change ...func(*rest.Options)) *api {
	a := startAPIThatFails(change...)
	DeferCleanup(func() {
		Expect(a.log.String()).NotTo(Or(ContainSubstring("level=ERROR"), ContainSubstring("level=WARN"), ContainSubstring("goroutine ")))
	})
	return a
}

// startAPIThatFails is startAPI for specs that expect errors in the log.
func startAPIThatFails(change ...func(*rest.Options)) *api {
	GinkgoHelper()
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before)) })

	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	return serve(url, change...)
}

// serve serves the API over a database.
func serve(url string, change ...func(*rest.Options)) *api {
	GinkgoHelper()
	db := openStore(url)
	DeferCleanup(func() { Expect(db.Close()).To(Succeed()) })

	a := &api{store: db, file: strings.TrimPrefix(url, "sqlite://"), log: &lockedBuffer{}, client: &http.Client{
		Timeout: testkit.Patience, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	options := rest.Options{Store: db, Log: slog.New(slog.NewTextHandler(a.log, nil))}
	for _, c := range change {
		c(&options)
	}
	a.word = cmp.Or(options.SchemaWord, "core_db")
	server := httptest.NewUnstartedServer(rest.New(options))
	// A client of a spec that reads slowly has to read little of what was sent before.
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		Expect(c.(*net.TCPConn).SetWriteBuffer(64 << 10)).To(Succeed())
		return ctx
	}
	server.Start()
	a.url = server.URL
	DeferCleanup(func() {
		a.client.CloseIdleConnections()
		server.Close()
	})
	return a
}

const form = "application/x-www-form-urlencoded"

func (a *api) do(method, path, contentType string, body io.Reader, header ...string) answer {
	GinkgoHelper()
	got, operation := a.call(method, path, contentType, body, header...)
	if got.status < 400 && operation != "" {
		covered.add(operation)
	}
	return got
}

// call is do for what does not count as a test of the operation.
func (a *api) call(method, path, contentType string, body io.Reader, header ...string) (got answer, operation string) {
	GinkgoHelper()
	req, err := http.NewRequest(method, a.url+path, body)
	Expect(err).NotTo(HaveOccurred())
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := a.client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	got = answer{res.StatusCode, res.Header, string(text)}
	return got, a.judge(req, got)
}

func (a *api) get(path string) answer {
	GinkgoHelper()
	return a.do(http.MethodGet, path, "", nil)
}

func (a *api) put(path, fields string, header ...string) answer {
	GinkgoHelper()
	return a.do(http.MethodPut, path, form, strings.NewReader(fields), header...)
}

func (a *api) patch(path, fields string, header ...string) answer {
	GinkgoHelper()
	return a.do(http.MethodPatch, path, form, strings.NewReader(fields), header...)
}

func (a *api) delete(path string) answer {
	GinkgoHelper()
	return a.do(http.MethodDelete, path, "", nil)
}

// post sends a form; without fields, no body at all.
func (a *api) post(path, fields string) answer {
	GinkgoHelper()
	if fields == "" {
		return a.do(http.MethodPost, path, "", nil)
	}
	return a.do(http.MethodPost, path, form, strings.NewReader(fields))
}

func (a *api) postJSON(path, body string) answer {
	GinkgoHelper()
	return a.do(http.MethodPost, path, "application/json", strings.NewReader(body))
}

// given makes what a spec starts from: pairs of path and form.
func (a *api) given(calls ...string) {
	GinkgoHelper()
	for i := 0; i < len(calls); i += 2 {
		got, _ := a.call(http.MethodPost, calls[i], form, strings.NewReader(calls[i+1]))
		Expect(got.status).To(Equal(http.StatusCreated), got.body)
	}
}

func (a *api) revision() int64 {
	GinkgoHelper()
	var revision int64
	Expect(a.store.Read(context.Background(), func(r store.Reader) (err error) {
		revision, err = r.Revision()
		return err
	})).To(Succeed())
	return revision
}

func (a answer) expectJSON(status int, body string) {
	GinkgoHelper()
	Expect(a.body).To(Equal(body))
	Expect(a.status).To(Equal(status))
	Expect(a.header.Get("Content-Type")).To(Equal("application/json"))
}

func (a answer) expectWrite(status int, body, revision string) {
	GinkgoHelper()
	a.expectJSON(status, body)
	Expect(a.header.Values("Gatehouse-Revision")).To(Equal([]string{revision}))
}

func (a answer) expectProblem(status int, body string) {
	GinkgoHelper()
	Expect(a.body).To(Equal(body))
	Expect(a.status).To(Equal(status))
	Expect(a.header.Get("Content-Type")).To(Equal("application/problem+json"))
	Expect(a.header).NotTo(HaveKey("Gatehouse-Revision"))
}

// invalid is the answer to bad fields, given as pairs of field and message,
// both as they appear in JSON.
func invalid(path string, errs ...string) string {
	list := make([]string, 0, len(errs)/2)
	for i := 0; i < len(errs); i += 2 {
		list = append(list, `{"field":"`+errs[i]+`","message":"`+errs[i+1]+`"}`)
	}
	detail := "1 field is"
	if len(list) > 1 {
		detail = string(rune('0'+len(list))) + " fields are"
	}
	return `{"type":"urn:gatehouse:problem:invalid_fields","title":"Fields are missing or wrong","status":400,` +
		`"detail":"` + detail + ` missing or wrong; see errors","instance":"` + path + `",` +
		`"code":"invalid_fields","errors":[` + strings.Join(list, ",") + `]}`
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
