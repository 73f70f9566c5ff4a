package policies_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// startBooks replaces blue behind the route of shop.test with a gRPC server that also answers other requests; startCalls
// uses one that does not.
func startBooks(w *world) {
	GinkgoHelper()
	putBooks(w, func(b *testkit.Books) int { return b.Port })
}

func startCalls(w *world) {
	GinkgoHelper()
	putBooks(w, func(b *testkit.Books) int { return b.Calls })
}

func putBooks(w *world, at func(*testkit.Books) int) {
	GinkgoHelper()
	b, err := testkit.StartBooks()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	name := fmt.Sprint("books-", at(b))
	w.post("/upstream", "Upstream_name="+name, "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", at(b)))
	w.post("/service/shop/route/root/upstream/" + name)
	_, err = w.api.Delete(limit(), "/service/shop/route/root/upstream/blue?wait=applied") // another entry may have done it
	Expect(err).NotTo(HaveOccurred())
}

// message returns one of shop/books.proto, from JSON.
func message(name protoreflect.Name, json string) *dynamicpb.Message {
	GinkgoHelper()
	m, err := testkit.BooksMessage(name)
	Expect(err).NotTo(HaveOccurred())
	Expect(protojson.Unmarshal([]byte(json), m)).To(Succeed())
	return m
}

// frame returns a message on the wire of gRPC and gRPC-Web.
func frame(m proto.Message) string {
	GinkgoHelper()
	b, err := proto.Marshal(m)
	Expect(err).NotTo(HaveOccurred())
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b)))) + string(b) //nolint:gosec // a short message
}

func title(book *dynamicpb.Message) string {
	return book.Get(book.Descriptor().Fields().ByName("title")).String()
}

// readFrames describes frames: the titles of books, and trailers in lower case.
func readFrames(body string) (told []string) {
	for len(body) >= 5 {
		n := int(binary.BigEndian.Uint32([]byte(body[1:5])))
		if len(body) < 5+n {
			return append(told, "cut")
		}
		kind, data := body[0], body[5:5+n]
		body = body[5+n:]
		if kind == 0x80 {
			told = append(told, strings.ReplaceAll(strings.TrimSpace(data), "\r\n", ","))
			continue
		}
		book, err := testkit.BooksMessage("Book")
		if err == nil {
			err = proto.Unmarshal([]byte(data), book)
		}
		if err != nil {
			return append(told, err.Error())
		}
		told = append(told, title(book))
	}
	if body != "" {
		told = append(told, "more: "+body)
	}
	return told
}

// decodeText decodes base64 in which each frame may have its own padding.
func decodeText(text string) string {
	var out strings.Builder
	for len(text) >= 4 {
		b, err := base64.StdEncoding.DecodeString(text[:4])
		if err != nil {
			return err.Error()
		}
		out.Write(b)
		text = text[4:]
	}
	return out.String() + text
}

// dialBooks returns a client of shop.test.
func dialBooks(w *world) *grpc.ClientConn {
	GinkgoHelper()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", w.port), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("shop.test"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return conn
}

// plainGRPC returns a world with a gRPC server, and an attached filter.
func plainGRPC(kind, config string) *world {
	GinkgoHelper()
	p := grpcWeb()
	p.kind, p.config, p.changed, p.given = kind, config, config, startCalls
	w := newWorld(p)
	w.attach(onShop)
	return w
}

var _ = Describe("A gRPC client", func() {
	DescribeTable("calls and receives streams through filters that change other requests", func(kind, config string) {
		w := plainGRPC(kind, config)
		conn := dialBooks(w)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()

		book := message("Book", "{}")
		Expect(conn.Invoke(ctx, "/shop.Books/GetBook", message("Query", `{"id":7}`), book)).To(Succeed())
		Expect(title(book)).To(Equal("Book 7"))

		err := conn.Invoke(ctx, "/shop.Books/GetBook", message("Query", `{"id":404}`), book)
		Expect(status.Code(err)).To(Equal(codes.NotFound), "%s", err)
		Expect(err).To(MatchError(ContainSubstring("no book has the id 404")))

		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/shop.Books/ListBooks")
		Expect(err).NotTo(HaveOccurred())
		Expect(stream.SendMsg(message("Query", `{"delay_ms":1}`))).To(Succeed())
		Expect(stream.CloseSend()).To(Succeed())
		for _, want := range []string{"Book 1", "Book 2"} {
			Expect(stream.RecvMsg(book)).To(Succeed())
			Expect(title(book)).To(Equal(want))
		}
		Expect(stream.RecvMsg(book)).To(MatchError(io.EOF))
	},
		Entry("gRPC-Web", "http_filter_grpcweb", `{}`),
		Entry("JSON", "http_filter_grpcjson", grpcJSON().config),
		Entry("compression", "route_filter_compress", `{}`),
		Entry("error pages", "route_filter_errorpage", `{"pages":[{"statuses":["400-599"],"text":"a page"}]}`),
		Entry("a limit of bodies", "route_filter_bodylimit", `{"bytes":100000}`),
	)

	It("is limited to its grpc-timeout if the route says so, and to the route's maximum", func() {
		w := newWorld(grpcWeb()) // its server has no timeout of its own

		const answered, cut = time.Second, 20 * time.Second // what a call takes where it is not ended before
		for _, try := range []struct {
			bound, asks, said string
			takes, least      time.Duration
		}{
			{`{}`, "200m", "0 ", answered, answered},
			{`{"timeouts":{"grpc":"10s"}}`, "", "0 ", answered, answered},
			{`{"timeouts":{"grpc":"10s"}}`, "10S", "0 ", answered, answered},
			{`{"timeouts":{"grpc":"10s"}}`, "200m", "4 the service did not answer in time", cut, 150 * time.Millisecond},
			{`{"timeouts":{"grpc":"300ms"}}`, "10S", "4 the service did not answer in time", cut, 250 * time.Millisecond},
		} {
			a, err := w.api.Do(limit(), http.MethodPatch, "/service/shop/route/root?wait=applied&timeout=30s", "application/json", `{"route_config":`+try.bound+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			said, took := callOver2(w, try.asks, try.takes)
			Expect(said).To(HavePrefix(try.said), "%+v", try)
			Expect(took).To(And(BeNumerically(">=", try.least), BeNumerically("<", 10*time.Second)), "%+v", try)
		}
	})
})

// callOver2 makes a call for which the backend takes a time, over HTTP/2, with a timeout. It returns the status with its message.
func callOver2(w *world, timeout string, takes time.Duration) (said string, took time.Duration) {
	GinkgoHelper()
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(limit(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/shop.Books/GetBook", w.port),
		bytes.NewBufferString(frame(message("Query", fmt.Sprintf(`{"id":1,"delay_ms":%d}`, takes.Milliseconds())))))
	Expect(err).NotTo(HaveOccurred())
	req.Host, req.Header = "shop.test", http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	if timeout != "" {
		req.Header.Set("grpc-timeout", timeout)
	}
	began := time.Now()
	resp, err := transport.RoundTrip(req)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	_, err = io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	took = time.Since(began)
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		if h.Get("Grpc-Status") != "" {
			return h.Get("Grpc-Status") + " " + h.Get("Grpc-Message"), took
		}
	}
	return fmt.Sprint("none ", resp.Status), took
}
