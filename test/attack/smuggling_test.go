package attack_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// hidden is a request that a parser finds if it ends the previous one too early.
const hidden = "GET /hidden HTTP/1.1\r\nHost: shop.example\r\n\r\n"

// smuggling is a try: what it is, the status with which it is refused, and its bytes.
type smuggling struct{ what, status, request string }

// smuggled returns bytes in which two parsers can find the end of a request in different places. A
// proxy that forwards them lets a client inject text into the next client's request.
func smuggled() []smuggling {
	return []smuggling{
		{"two kinds of length", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
		{"two kinds of length, the other way round", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + hidden},
		{"two lengths", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nContent-Length: 45\r\n\r\n" + hidden},
		{"two lengths in one header", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0, 45\r\n\r\n" + hidden},
		{"a length with a sign", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: +0\r\n\r\n" + hidden},
		{"a length in hexadecimal", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0x2d\r\n\r\n" + hidden},
		{"a negative length", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: -1\r\n\r\n" + hidden},
		{"a space before the colon", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length : 45\r\n\r\n" + hidden},
		{"an unknown encoding", "501", "POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden},
		{"an encoding behind chunked", "501", "POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden},
		{"chunked twice", "501", "POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
		{"a vertical tab before chunked", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + hidden},
		{"NUL in a header", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n" + hidden},
		{"no name of a header", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\n: a\r\n\r\n" + hidden},
		{"no header but a word", "400", "POST / HTTP/1.1\r\nHost: shop.example\r\nword\r\n\r\n" + hidden},
		{"another version", "426", "POST / HTTP/1.2\r\nHost: shop.example\r\n\r\n" + hidden},
	}
}

var _ = Describe("A request that two parsers could read differently", func() {
	It("is refused, and no part of it reaches a backend", func(ctx SpecContext) {
		for _, s := range some(8, smuggled()) {
			before := gw.blue.Requests()
			answers := everything(ctx, s.request)
			Expect(answers).To(HavePrefix("HTTP/1.1 "+s.status+" "), s.what)
			Expect(strings.Count(answers, "HTTP/1.1 ")).To(Equal(1), s.what+": "+answers)
			Expect(gw.blue.Requests()).To(Equal(before), s.what)
		}
	}, SpecTimeout(2*time.Minute))

	It("is rewritten if Envoy accepts it: a CR in a header ends no line", func(ctx SpecContext) {
		a := gw.raw(ctx, "GET / HTTP/1.1", "Host: shop.example", "X-Word: a\rContent-Length: 45")
		Expect(a.Status).To(Equal(200))
		var echo testkit.Echo
		Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
		Expect(echo.Headers).NotTo(HaveKey("Content-Length"))
		Expect(echo.Headers["X-Word"]).To(Equal([]string{"aContent-Length: 45"}))
	})
})

// everything sends bytes and returns the answer until the gateway closes the connection.
func everything(ctx context.Context, request string) string {
	GinkgoHelper()
	conn := gw.dial(ctx)
	defer conn.Close()
	_, err := io.WriteString(conn, request)
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	answer, _ := io.ReadAll(conn) // a reset is as good as a close
	return string(answer)
}
