package attack_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// dead is the status of a request whose connection ended without an answer.
const dead = 0

// dial opens a connection to the gateway.
func (t target) dial(ctx context.Context) net.Conn {
	GinkgoHelper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(t.port))
	Expect(err).NotTo(HaveOccurred())
	Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	return conn
}

// raw sends an HTTP/1.1 request byte by byte, with its lines joined, and reads the
// answer.
func (t target) raw(ctx context.Context, lines ...string) testkit.Answer {
	GinkgoHelper()
	conn := t.dial(ctx)
	defer conn.Close()
	return exchange(conn, lines...)
}

// exchange sends an HTTP/1.1 request over a connection, and reads the answer.
func exchange(conn io.ReadWriter, lines ...string) testkit.Answer {
	GinkgoHelper()
	_, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
	Expect(err).NotTo(HaveOccurred())
	method, _, _ := strings.Cut(lines[0], " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return testkit.Answer{Status: dead, Body: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return testkit.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}
}

// raw2 sends an HTTP/2 request with exactly these headers, "name: value", and reads the
// answer.
func (t target) raw2(ctx context.Context, headers ...string) testkit.Answer {
	GinkgoHelper()
	conn := t.dial(ctx)
	defer conn.Close()
	return exchange2(conn, headers...)
}

// exchange2 sends an HTTP/2 request over a connection, and reads the answer.
func exchange2(conn io.ReadWriter, headers ...string) testkit.Answer {
	GinkgoHelper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range headers {
		i := 1 + strings.Index(h[1:], ": ") // a name may begin with a colon
		Expect(enc.WriteField(hpack.HeaderField{Name: h[:i], Value: h[i+2:]})).To(Succeed())
	}
	_, err := io.WriteString(conn, http2.ClientPreface)
	Expect(err).NotTo(HaveOccurred())
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	Expect(f.WriteSettings()).To(Succeed())
	Expect(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})).To(Succeed())
	return readAnswer(f)
}

// readAnswer reads the answer on the first stream.
func readAnswer(f *http2.Framer) testkit.Answer {
	GinkgoHelper()
	a := testkit.Answer{Status: dead, Header: http.Header{}}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return testkit.Answer{Status: dead, Body: err.Error()}
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			a.Status, err = strconv.Atoi(frame.PseudoValue("status"))
			Expect(err).NotTo(HaveOccurred())
			for _, h := range frame.RegularFields() {
				a.Header.Add(h.Name, h.Value)
			}
		case *http2.DataFrame:
			a.Body += string(frame.Data())
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return testkit.Answer{Status: dead, Body: fmt.Sprint(frame)}
		}
		if flags := frame.Header().Flags; frame.Header().StreamID == 1 && flags.Has(http2.FlagDataEndStream) {
			return a
		}
	}
}
