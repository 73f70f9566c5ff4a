package explain_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// startBackend answers every request with what it received, on all addresses of
// 127.0.0.0/8. net/http would refuse many of the paths that Envoy forwards.
func startBackend(ctx context.Context) int {
	GinkgoHelper()
	l := listen(ctx, "0.0.0.0:0")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answer(conn)
		}
	}()
	DeferCleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().(*net.TCPAddr).Port
}

// answer serves one connection until the other side closes it.
func answer(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(line, " ")
		target := strings.TrimSuffix(strings.TrimRight(rest, "\r\n"), " HTTP/1.1")
		host := ""
		for {
			if line, err = in.ReadString('\n'); err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
			if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "host") {
				host = strings.TrimSpace(value)
			}
		}
		ip, _, _ := net.SplitHostPort(conn.LocalAddr().String())
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s: %s\r\n%s: %x\r\n%s: %x\r\nContent-Length: 0\r\n\r\n",
			sawAddress, ip, sawTarget, target, sawHost, host); err != nil {
			return
		}
	}
}

// client sends requests unchanged, byte by byte.
type client struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func bytesOf(r explain.Request) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", r.Method, r.Target)
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// send keeps its connection for the next request if it can. It reopens once a
// connection that was closed meanwhile.
func (c *client) send(r explain.Request) (result, error) {
	fresh := c.conn == nil
	got, err := c.exchange(r)
	if err != nil && !fresh && !errors.Is(err, context.DeadlineExceeded) {
		c.close()
		got, err = c.exchange(r)
	}
	if err != nil {
		c.close()
	}
	return got, err
}

func (c *client) exchange(r explain.Request) (result, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			return result{}, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return result{}, err
	}
	if _, err := c.conn.Write(bytesOf(r)); err != nil {
		return result{}, err
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: r.Method})
	if err != nil {
		return result{}, fmt.Errorf("reading the answer to %s: %w", hex.EncodeToString(bytesOf(r)), err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return result{}, err
	}
	if resp.Close {
		c.close()
	}
	return resultOf(resp, string(body)), nil
}
