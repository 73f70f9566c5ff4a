package client_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

var _ = Describe("A call", func() {
	It("sends the token and reads data and revision", func(ctx SpecContext) {
		c := serverOf(client.Options{Token: "s3cret"}, func(w http.ResponseWriter, r *http.Request) {
			Expect(r.Header.Get("Authorization")).To(Equal("Bearer s3cret"))
			Expect(r.URL.EscapedPath()).To(Equal("/upstream/a%2Fb"))
			w.Header().Set("Gatehouse-Revision", "7")
			answer(w, 200, "application/json", `{"data":{"delete_core_db_upstream":{"affected_rows":1}}}`)
		})
		a, err := c.Do(ctx, client.Request{Method: http.MethodDelete, Path: client.Path("upstream", "a/b")})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Revision).To(Equal(int64(7)))
		Expect(string(a.Data)).To(Equal(`{"delete_core_db_upstream":{"affected_rows":1}}`))
	})

	It("turns a problem into an error: one line, and one for each field", func(ctx SpecContext) {
		c := serverOf(client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 400, "application/problem+json", `{"type":"urn:x","title":"Fields are missing or wrong","status":400,
				"detail":"2 fields are missing or wrong; see errors","code":"invalid_fields",
				"errors":[{"field":"Upstream_port","message":"70000 is no port"},{"field":"Upstream_ip","message":"\u001b[2Jx"}]}`)
		})
		_, err := c.Do(ctx, client.Request{Method: http.MethodPost, Path: "/upstream"})
		Expect(err).To(MatchError("POST /upstream: 2 fields are missing or wrong (400 invalid_fields)\n  Upstream_port: 70000 is no port\n  Upstream_ip: \\u001b[2Jx"))
		e, ok := errors.AsType[*client.Error](err)
		Expect(ok).To(BeTrue())
		Expect(e.Status).To(Equal(400))
		Expect(e.Code).To(Equal("invalid_fields"))
		Expect(e.Fields).To(HaveLen(2))
	})

	DescribeTable("tells what to do",
		func(ctx SpecContext, token string, status int, contentType, body, want string) {
			c := serverOf(client.Options{Token: token}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://elsewhere.example/")
				answer(w, status, contentType, body)
			})
			_, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
			Expect(err).To(MatchError(want))
		},
		Entry("no token", "", 401, "application/problem+json", `{"detail":"who are you","code":"unauthorized"}`,
			"GET /x: who are you (401 unauthorized); send a token with --token-file, GATEHOUSE_TOKEN_FILE or a context"),
		Entry("a wrong token", "t", 401, "application/problem+json", `{"detail":"who are you","code":"unauthorized"}`,
			"GET /x: who are you (401 unauthorized); the server does not know the token that was sent"),
		Entry("a viewer token", "t", 403, "application/problem+json", `{"detail":"no","code":"forbidden"}`,
			"GET /x: no (403 forbidden); check whether the token has the role admin"),
		Entry("in use", "", 409, "application/problem+json", `{"detail":"upstream \"blue\" is in use","code":"in_use","referenced_by":["/service/shop/route/root"]}`,
			"GET /x: upstream \"blue\" is in use (409 in_use)\n  referenced by /service/shop/route/root"),
		Entry("another server's error", "", 502, "text/html", "<h1>", "GET /x: Bad Gateway (502)"),
		Entry("a redirect, which is not followed", "t", 302, "text/html", "", `GET /x: the server redirects the call to "http://elsewhere.example/", which is not followed (302)`),
	)

	It("trusts the specified authorities, and tells how to specify one", func(ctx SpecContext) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, "application/json", `{"data":{}}`)
		}))
		DeferCleanup(server.Close)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		path := filepath.Join(files("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))), "ca.pem")
		get := func(file string) error {
			authorities, err := client.ReadAuthorities(file)
			Expect(err).NotTo(HaveOccurred())
			c, err := client.New(client.Options{Server: server.URL, Authorities: authorities})
			Expect(err).NotTo(HaveOccurred())
			defer c.Close()
			_, err = c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
			return err
		}
		Expect(get(path)).To(Succeed())
		Expect(get("")).To(MatchError(And(
			HavePrefix("calling "+server.URL+": tls: failed to verify certificate: x509: certificate signed by unknown authority;"),
			HaveSuffix("; name the certificate authority of the server with --ca-file, GATEHOUSE_CA_FILE or a context"))))

		bad := filepath.Join(files("ca.pem", "no certificate"), "ca.pem")
		_, err := client.ReadAuthorities(bad)
		Expect(err).To(MatchError("reading the authority's certificate: " + bad + " has none in PEM (-----BEGIN CERTIFICATE-----)"))
		_, err = client.ReadAuthorities("/not/there")
		Expect(err).To(MatchError("reading the authority's certificate: open /not/there: no such file or directory"))
	})

	It("recognizes an answer that is not JSON", func(ctx SpecContext) {
		c := serverOf(client.Options{}, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "text/html", "<h1>") })
		_, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
		Expect(err).To(MatchError("GET /x: the answer is not JSON; is " + c.Server() + " a Gatehouse?"))
	})

	It("ends after the timeout, also in the middle of a stream", func(ctx SpecContext) {
		c := serverOf(client.Options{Timeout: 500 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/config" {
				answer(w, 200, "application/yaml", "version: 1\n")
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
		_, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
		Expect(err).To(MatchError(And(ContainSubstring("has not answered within 500ms"), ContainSubstring("--timeout"))))
		Expect(err).To(MatchError(context.DeadlineExceeded))

		body, err := c.ReadConfig(ctx, client.ConfigQuery{})
		Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(body)
		Expect(string(data)).To(Equal("version: 1\n"))
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(body.Close()).To(Succeed())
	})

	It("tells how to reach a server when none answers", func(ctx SpecContext) {
		c, err := client.New(client.Options{Server: "http://127.0.0.1:1"})
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Do(ctx, client.Request{Method: http.MethodGet, Path: "/x"})
		Expect(err).To(MatchError(And(HavePrefix("calling http://127.0.0.1:1: "), ContainSubstring("connection refused; is gatehouse serve running there?"))))
	})

	DescribeTable("refuses an address that is not a server's", func(server string) {
		_, err := client.New(client.Options{Server: server})
		Expect(err).To(MatchError(ContainSubstring("is not an address such as http://127.0.0.1:1323")))
	}, Entry(nil, "127.0.0.1:1323"), Entry(nil, "ftp://x"), Entry(nil, "http://"), Entry(nil, "http://u:p@x"), Entry(nil, "http://x?y=z"))

	It("refuses an invalid token, without showing it", func() {
		_, err := client.New(client.Options{Server: "http://x", Token: "two\nlines"})
		Expect(err).To(MatchError(Not(ContainSubstring("two"))))
	})
})

var _ = Describe("A list", func() {
	pages := func(w http.ResponseWriter, r *http.Request) {
		Expect(r.URL.Path).To(Equal("/upstream"))
		Expect(r.URL.Query().Get("tag")).To(Equal("shop"))
		switch r.URL.Query().Get("after") {
		case "":
			w.Header().Set("Link", `</upstream?after=two&limit=1000&tag=shop>; rel="next"`)
			answer(w, 200, "application/json", `{"data":{"my_word_upstream":[{"upstream_name":"a"},{"upstream_name":"b"}]}}`)
		case "two":
			answer(w, 200, "application/json", `{"data":{"my_word_upstream":[{"upstream_name":"c"}]}}`)
		}
	}

	It("continues over all pages", func(ctx SpecContext) {
		list, err := serverOf(client.Options{}, pages).List(ctx, "/upstream", url.Values{"tag": {"shop"}}, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(3))
		Expect(string(list[2])).To(Equal(`{"upstream_name":"c"}`))
	})

	It("stops at the limit", func(ctx SpecContext) {
		list, err := serverOf(client.Options{}, pages).List(ctx, "/upstream", url.Values{"tag": {"shop"}}, 2)
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(2))
	})

	It("does not loop", func(ctx SpecContext) {
		c := serverOf(client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</upstream?after=x>; rel="next"`)
			answer(w, 200, "application/json", `{"data":{"core_db_upstream":[]}}`)
		})
		_, err := c.List(ctx, "/upstream", nil, 0)
		Expect(err).To(MatchError("reading GET /upstream: the server names the same page as the next one"))
	})
})

var _ = Describe("Names of objects", func() {
	DescribeTable("become link paths", func(what, target, want string) {
		path, err := client.LinkPath(what, target)
		if err != nil {
			path = err.Error()
		}
		Expect(path).To(Equal(want))
	},
		Entry(nil, "upstream/blue", "service/shop/route/root", "/service/shop/route/root/upstream/blue"),
		Entry(nil, "upstreams/blue", "route/shop/root", "/service/shop/route/root/upstream/blue"),
		Entry(nil, "filter/limit", "service/shop/route/root", "/service/shop/route/root/filter/limit"),
		Entry(nil, "filter/login", "service/shop", "/service/shop/filter/login"),
		Entry(nil, "secret/tls", "service/shop", "/service/shop/secret/tls"),
		Entry(nil, "service/shop", "proxy/gw", "/proxy/gw/service/shop"),
		Entry(nil, "globalconfig/rates", "proxy/gw", "/proxy/gw/globalconfig/rates"),
		Entry(nil, "proxy/gw", "service/shop", "name the object to attach first: service/shop proxy/gw"),
		Entry(nil, "upstream/blue", "proxy/gw", "upstreams cannot be attached to proxies, only to a route"),
		Entry(nil, "proxy/gw", "upstream/blue", "proxies are not attached to anything"),
		Entry(nil, "upstrem/blue", "proxy/gw", `"upstrem" is not a kind of object; did you mean upstream?`),
		Entry(nil, "blue", "proxy/gw", `"blue" does not name an object; write KIND/NAME such as upstream/blue or service/shop/route/root`),
		Entry(nil, "upstream/a/b", "route/shop/root", `"a/b" is not the name of one upstream: a name has no slash`),
		Entry(nil, "upstream/a", "route/shop", `"shop" does not name a route; write SERVICE/ROUTE`),
	)

	It("are accepted in the plural and in any case", func() {
		for _, word := range []string{"proxy", "Proxies", "PROXY"} {
			k, err := client.FindKind(word)
			Expect(err).NotTo(HaveOccurred())
			Expect(k.Name).To(Equal("proxy"))
		}
		_, err := client.FindKind("elephant")
		Expect(err).To(MatchError(`"elephant" is not a kind of object; the kinds are upstream, service, route, proxy, filter, globalconfig, secret, keyset, key, consumer, list`))
	})
})
