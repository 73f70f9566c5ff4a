package testkit

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
)

//go:embed http3.py
var http3Client string

// HTTP3 is a client of HTTP/3 (aioquic). It does one thing after the other, and is not safe for concurrent use.
type HTTP3 struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// HTTP3Answer is the response to a request.
type HTTP3Answer struct {
	Status int
	Header http.Header
	Body   string
}

// NewHTTP3 starts a client. Stop ends it.
func NewHTTP3() (*HTTP3, error) {
	python, err := Binary("aioquic")
	if err != nil {
		return nil, fmt.Errorf("%w: `make aioquic` fetches it", err)
	}
	c := &HTTP3{cmd: exec.Command(python, "-c", http3Client)} //nolint:noctx // Stop ends it
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// Stop ends the client with its connections.
func (c *HTTP3) Stop() {
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// Connect opens the named connection to a port of the loopback, for a server name; empty sends none. ca is the file of
// the authorities that must have signed the certificate; empty accepts any.
func (c *HTTP3) Connect(name string, port int, sni, ca string) error {
	var server any
	if sni != "" {
		server = sni
	}
	return c.do(map[string]any{"connect": name, "to": []any{"127.0.0.1", port}, "sni": server, "ca": ca}, nil)
}

// Ask sends a request over the named connection.
func (c *HTTP3) Ask(name, method, authority, path string, headers [][2]string, body string) (HTTP3Answer, error) {
	var got struct {
		Status  int         `json:"status"`
		Headers [][2]string `json:"headers"`
		Body    string      `json:"body"`
	}
	err := c.do(map[string]any{
		"on": name, "method": method, "authority": authority, "path": path, "headers": headers, "body": body,
	}, &got)
	header := http.Header{}
	for _, h := range got.Headers {
		header.Add(h[0], h[1])
	}
	return HTTP3Answer{got.Status, header, got.Body}, err
}

// Move continues the named connection from another address of the loopback.
func (c *HTTP3) Move(name, from string) error {
	return c.do(map[string]any{"move": name, "from": from}, nil)
}

// First sends the first flight of clients at several addresses of the loopback to one of its ports. They say nothing
// more, as those whose addresses were forged. It returns the size of a flight, and the least and the most that an
// address got, until nothing came for a second.
func (c *HTTP3) First(port int, sni string, sources int) (sent, least, most int, err error) {
	var got struct{ Sent, Least, Most int }
	err = c.do(map[string]any{"first": []any{"127.0.0.1", port}, "sni": sni, "sources": sources}, &got)
	return got.Sent, got.Least, got.Most, err
}

func (c *HTTP3) do(command map[string]any, result any) error {
	line, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("telling the client of HTTP/3: %w", err)
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading from the client of HTTP/3: %w", err)
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(answer, &failed); err != nil {
		return err
	}
	if failed.Error != "" {
		return errors.New(failed.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}
