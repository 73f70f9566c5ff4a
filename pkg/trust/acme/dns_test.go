package acme

import (
	"context"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// hookOf writes a program for a hook.
func hookOf(script string) (program, dir string) {
	GinkgoHelper()
	dir = GinkgoT().TempDir()
	program = filepath.Join(dir, "hook")
	Expect(os.WriteFile(program, []byte("#!/bin/sh\ncd "+dir+"\n"+script+"\n"), 0o700)).To(Succeed()) //nolint:gosec // a program
	return program, dir
}

// calling is a watch and an authority with a hook.
func calling(program string, dns model.ACMEDNS) (*Watch, *authority) {
	w := New(Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), DNSExec: program, Dial: (&net.Dialer{}).DialContext})
	return w, &authority{name: "ca", config: &model.ACMEConfig{DNS: &dns}}
}

// nameServer answers a query over TCP with a TXT record; an empty value means that there is none.
func nameServer(value string) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		query := make([]byte, 512)
		n, err := server.Read(query)
		var m dnsmessage.Message
		if err != nil || m.Unpack(query[2:n]) != nil {
			return
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if value != "" {
			header := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET}
			m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.TXTResource{TXT: []string{value}}}}
		}
		if answer, err := m.AppendPack(make([]byte, 2)); err == nil {
			binary.BigEndian.PutUint16(answer, uint16(len(answer)-2)) //nolint:gosec // a short answer
			_, _ = server.Write(answer)
		}
	}()
	return client
}

// refusing is a store that takes nothing.
type refusing struct{ store.AutomaticCertificates }

func (refusing) SaveAutomatic(context.Context, string, *store.Automatic) error {
	return &model.Error{Kind: model.Conflict, Message: "another replica orders"}
}

var _ = Describe("A record in DNS", func() {
	const second = model.Duration(time.Second)
	call := hookCall{present, "*.shop.test", txtRecord{"_acme-challenge.shop.test", "value"}}

	It("is wanted for wildcards, and for hosts that choose it, from an authority with a hook", func() {
		hook := `,"every_service":true,"dns":{"hook":"exec"}`
		objects := []model.Object{
			serviceOf("a", "a.test", "auto_dns"), serviceOf("b", "*.b.test", "auto"), serviceOf("c", "*.c.test", ""), serviceOf("d", "d.test", "auto"),
			onProxy("gw", "a"), onProxy("gw", "b"), onProxy("gw", "c"), onProxy("gw", "d"),
		}
		list := setOf(append(objects, configOf("ca", hook))...).wanted("/hook")
		Expect(list).To(HaveLen(4))
		for i, by := range []string{"dns-01", "dns-01", "dns-01", "http-01"} {
			Expect([]string{list[i].challenge(), list[i].problem}).To(Equal([]string{by, ""}))
		}
		By("and is a problem of those that say so, if there is none")
		list = setOf(append(objects, configOf("ca", hook))...).wanted("")
		Expect(list).To(HaveLen(3))
		Expect(list[0].problem).To(Equal("globalconfig ca has the dns hook exec, and the program was started without --acme-dns-exec"))
		Expect(list[2].problem).To(BeEmpty())
		list = setOf(append(objects, configOf("ca", `,"dns":{"hook":"webhook","url":"https://dns.test/","ca_certificate":"no"}`))...).wanted("")
		Expect(list[1].problem).To(Equal("globalconfig ca names the secret no in dns, which has no certificate"))
	})

	It("is written by a program that gets no setting of the gateway", func() {
		program, dir := hookOf(`echo "$@" > call; env > env`)
		GinkgoT().Setenv("GATEHOUSE_ADMIN_TOKEN", "s3cret")
		w, a := calling(program, model.ACMEDNS{Hook: "exec"})
		Expect(w.callHook(context.Background(), a, call)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(dir, "call"))).To(Equal([]byte("present _acme-challenge.shop.test value\n")))
		env, err := os.ReadFile(filepath.Join(dir, "env")) //nolint:gosec // a file of this test
		Expect(err).NotTo(HaveOccurred())
		Expect(string(env)).To(And(ContainSubstring("ACME_HOST=*.shop.test\n"), Not(ContainSubstring("s3cret")), ContainSubstring("PATH=")))
	})

	It("is not written by a program that fails, whose words are bounded", func() {
		program, _ := hookOf(`head -c 1000000 /dev/zero | tr '\0' x >&2; exit 7`)
		w, a := calling(program, model.ACMEDNS{Hook: "exec"})
		err := w.callHook(context.Background(), a, call)
		Expect(err).To(MatchError(HavePrefix("the dns hook did not present the record: it ended with 7: xxx")))
		Expect(len(err.Error())).To(BeNumerically("<", 5000))
		text, advice := explain(err, "shop.test")
		Expect(text).To(HaveLen(mostText))
		Expect(advice).To(ContainSubstring("--acme-dns-exec"))
	})

	It("is not waited for longer than the timeout, and nothing of the program is left", func() {
		program, dir := hookOf(`sh -c 'echo $$ > pid; exec sleep 1000' & wait`)
		w, a := calling(program, model.ACMEDNS{Hook: "exec", Timeout: second})
		Expect(w.callHook(context.Background(), a, call)).To(MatchError("the dns hook did not present the record in 1s"))
		text, err := os.ReadFile(filepath.Join(dir, "pid")) //nolint:gosec // a file of this test
		Expect(err).NotTo(HaveOccurred())
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() bool {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")) //nolint:gosec // of this test's process
			return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ")
		}).WithTimeout(testkit.Patience).Should(BeTrue())
	})

	It("is not waited for either where a child of the program holds its output", func() {
		program, _ := hookOf(`sleep 20 & exit 3`)
		w, a := calling(program, model.ACMEDNS{Hook: "exec", Timeout: 5 * second})
		Expect(w.callHook(context.Background(), a, call)).To(MatchError("the dns hook did not present the record: it ended with 3"))
	})

	DescribeTable("is not written by a webhook that answers", func(status int, body, want string) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		DeferCleanup(server.Close)
		w, a := calling("", model.ACMEDNS{Hook: "webhook", URL: server.URL})
		w.opts.Store, w.opts.Authorities = refusing{}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		Expect(w.callHook(context.Background(), a, call)).To(MatchError("the dns webhook did not present the record: it answered " + want))
	},
		Entry("with another place", 302, "", "302"),
		Entry("without end", 500, strings.Repeat("x", 1<<20), "500: "+strings.Repeat("x", hookOutput)),
	)

	It("is not written by a webhook that nobody has signed for", func() {
		server := httptest.NewTLSServer(http.NotFoundHandler())
		DeferCleanup(server.Close)
		w, a := calling("", model.ACMEDNS{Hook: "webhook", URL: server.URL})
		w.opts.Store, w.opts.Authorities = refusing{}, "none"
		Expect(w.callHook(context.Background(), a, call)).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
	})

	It("is not reached over a redirect, which would get the token", func() {
		Expect(hookClient(nil, nil).CheckRedirect(nil, nil)).To(MatchError(http.ErrUseLastResponse))
	})

	It("has advice of its own", func() {
		a := &attempt{want: wanted{service: &model.Service{FQDN: "*.shop.test"}, host: "*.shop.test"}}
		for kind, what := range map[string]string{"unauthorized": "TXT record _acme-challenge.shop.test", "caa": "CAA record"} {
			_, advice := a.explain(protocol.Problem{Type: protocol.ProblemTypeNamespace + kind})
			Expect(advice).To(ContainSubstring(what))
		}
	})

	It("is told to be missing by the resolver that lacks it", func() {
		w, _ := calling("", model.ACMEDNS{})
		w.opts.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("must not be called") }
		Expect(w.missing(context.Background(), []string{"127.0.0.1:9"}, call.record)).To(And(HavePrefix("127.0.0.1:9 cannot be asked"), ContainSubstring("must not be called")))
	})

	It("is removed by a hook that is there, and is left without one", func() {
		const hook = `,"dns":{"hook":"exec"}`
		w, _ := calling("/hook", model.ACMEDNS{})
		lost := want(model.ACMEConfig{}) // its authority has no hook any more
		w.list, w.set = []wanted{lost}, setOf(configOf("a", ""), configOf("b", hook))
		Expect(w.removalOf("shop.test").from.name).To(Equal("b"))
		w.opts.DNSExec = ""
		Expect(w.removalOf("shop.test").from).To(BeNil(), "no command line names it")
		w.opts.Store = refusing{}
		r := &row{state: state{Records: []txtRecord{call.record}}}
		w.remove(context.Background(), w.removalOf("shop.test"), r)
		Expect(r.state.Records).To(HaveLen(1))
		Expect(r.state.Removal.Error).To(Equal("no globalconfig has a dns hook any more"))
	})

	It("is removed by as many calls at the same time as there are slots", func() {
		w, _ := calling("", model.ACMEDNS{})
		w.rows["shop.test"] = &row{state: state{Records: []txtRecord{call.record}}}
		startAll := func() time.Duration { return w.startRemovals(context.Background(), nil, start) } // without a group, it cannot
		w.removing = mostProofs
		Expect(startAll()).To(Equal(longestLook))
		w.removing = 0
		w.rows["shop.test"].state.Removal.At = start.Add(time.Second)
		Expect(startAll()).To(Equal(time.Second))
		Expect(func() { w.startRemovals(context.Background(), nil, start.Add(time.Second)) }).To(Panic(), "it would begin now")
	})

	It("is not forgotten with a host that is gone", func() {
		w, _ := calling("", model.ACMEDNS{})
		test := &trial{Began: []time.Time{start}, Ended: start}
		w.trials["gone.test"] = &row{state: state{Test: test, Records: []txtRecord{call.record}}}
		w.rows["gone.test"] = &row{state: state{Records: []txtRecord{call.record}}}
		w.unused["gone.test"] = start
		later := start.Add(365 * day)
		tests, orders := func() { w.discardTrials(context.Background(), nil, later) }, func() { w.discardUnused(context.Background(), nil, later) }
		Expect(tests).NotTo(Panic())
		Expect(orders).NotTo(Panic())
		w.trials["gone.test"].state.Records, w.rows["gone.test"].state.Records = nil, nil
		Expect(tests).To(Panic(), "without a group, it cannot")
		delete(w.running, "gone.test")
		Expect(orders).To(Panic())
	})

	It("is stored before it is written, of 8 at most", func() {
		program, dir := hookOf(`touch called`)
		w, from := calling(program, model.ACMEDNS{Hook: "exec", NoLookup: true})
		w.opts.Store = refusing{}
		a := &attempt{watch: w, want: want(model.ACMEConfig{})}
		a.want.from = from
		for n := range 9 {
			challenge := protocol.Challenge{Identifier: protocol.Identifier{Value: "shop.test"}, KeyAuthorization: strconv.Itoa(n)}
			Expect(a.publish(context.Background(), challenge)).NotTo(Succeed())
		}
		Expect(a.row.state.Records).To(HaveLen(8))
		Expect(a.row.state.Records[7].Value).To(Equal((&protocol.Challenge{KeyAuthorization: "8"}).DNS01KeyAuthorization()))
		Expect(filepath.Join(dir, "called")).NotTo(BeAnExistingFile())
	})

	It("can be seen when all resolvers have its value", func() {
		w, _ := calling("", model.ACMEDNS{})
		w.opts.Dial = func(_ context.Context, _, at string) (net.Conn, error) {
			return nameServer(map[string]string{"one:53": "value", "two:53": "value", "old:53": "other"}[at]), nil
		}
		missing := func(resolvers ...string) string { return w.missing(context.Background(), resolvers, call.record) }
		Expect(missing("one:53", "two:53")).To(BeEmpty())
		Expect(missing("one:53", "old:53")).To(Equal("old:53 has another value"))
		Expect(missing("one:53", "none:53")).To(Equal("none:53 has no such record"))
	})

	It("is removed again and again, and given up at last", func() {
		w, _ := calling("", model.ACMEDNS{})
		now := start
		w.opts.Now = func() time.Time { return now }
		s := &state{Records: []txtRecord{call.record}}
		for _, pause := range []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute} {
			w.notRemoved(wanted{host: "shop.test"}, s, errors.New("no"))
			Expect(s.Removal.At.Sub(now)).To(Equal(pause))
		}
		for range 5 {
			w.notRemoved(wanted{host: "shop.test"}, s, errors.New("no"))
		}
		Expect(s.Removal.At.Sub(now)).To(Equal(day))
		Expect(s.Records).NotTo(BeEmpty())
		w.notRemoved(wanted{host: "shop.test"}, s, errors.New("no"))
		Expect(s.Records).To(BeEmpty())
		Expect(s.Removal.Error).To(Equal("no"))
	})

	It("is a condition while it is left", func() {
		w := want(model.ACMEConfig{})
		r := issuedFor(90 * day)
		Expect(condition(w, r)).To(BeNil())
		r.state.Removal.Error = "it answered 503"
		Expect(condition(w, r).Message).To(HavePrefix("the record _acme-challenge.shop.test in DNS is still there: it answered 503."))
	})
})
