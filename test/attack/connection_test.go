package attack_test

import (
	"bytes"
	"io"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// These make a connection of HTTP/2 cost more than it may. Each sends until the gateway ends the connection, and at most
// as often as its bound.
var _ = DescribeTable("A connection of HTTP/2 ends when it costs more than requests do", func(ctx SpecContext, bound int, send func(*http2.Framer, uint32) error) {
	conn := gw.dial(ctx)
	defer conn.Close()
	_, err := io.WriteString(conn, http2.ClientPreface)
	Expect(err).NotTo(HaveOccurred())
	f := http2.NewFramer(conn, conn)
	Expect(f.WriteSettings()).To(Succeed())
	ended := make(chan struct{})
	go func() { // what the gateway says is read, so that it can say more
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn) // it ends as the attack expects
	}()
	sent := 0
	for ; sent < bound; sent++ {
		if err = send(f, uint32(2*sent+1)); err != nil { //nolint:gosec // small
			break
		}
	}
	Eventually(ended).WithContext(ctx).Should(BeClosed())
	// Meanwhile and afterwards others are served.
	Expect(gw.raw(ctx, "GET / HTTP/1.1", "Host: localhost", "Connection: close").Status).To(Equal(200))
},
	Entry("requests that are cancelled at once (CVE-2023-44487)", 5000, func(f *http2.Framer, stream uint32) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: get(), EndStream: true, EndHeaders: true}); err != nil {
			return err
		}
		return f.WriteRSTStream(stream, http2.ErrCodeCancel)
	}),
	Entry("headers without an end (CVE-2024-27316)", 1000, func(f *http2.Framer, stream uint32) error {
		if stream == 1 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: get()})
		}
		var block bytes.Buffer
		_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("x", 8000), Sensitive: true}) // a buffer fails never
		return f.WriteContinuation(1, false, block.Bytes())
	}),
	Entry("questions that must be answered (CVE-2019-9512)", 200_000, func(f *http2.Framer, _ uint32) error {
		return f.WritePing(false, [8]byte{})
	}),
	Entry("settings (CVE-2019-9515)", 200_000, func(f *http2.Framer, _ uint32) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16})
	}),
	Entry("data without bytes (CVE-2019-9518)", 200_000, func(f *http2.Framer, stream uint32) error {
		if stream == 1 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: get(), EndHeaders: true})
		}
		return f.WriteData(1, false, nil)
	}),
)

// get returns the headers of a request.
func get() []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "localhost"},
	} {
		_ = enc.WriteField(h) // a buffer fails never
	}
	return block.Bytes()
}
