package main

import (
	"net/http"
	"sync/atomic"
)

// fleet is all streams.
type fleet struct {
	streams int
	current atomic.Pointer[expectation]
}

// expectation is a text that the route configuration of every stream should
// hold.
type expectation struct {
	text []byte
	left atomic.Int64  // streams that were not sent it
	all  chan struct{} // closed when there are none
}

func (f *fleet) expect(text string) {
	e := &expectation{text: []byte(text), all: make(chan struct{})}
	e.left.Store(int64(f.streams))
	f.current.Store(e)
}

// met is called once by each stream.
func (e *expectation) met() {
	if e.left.Add(-1) == 0 {
		close(e.all)
	}
}

func (f *fleet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /expect", func(_ http.ResponseWriter, req *http.Request) { f.expect(req.FormValue("text")) })
	mux.HandleFunc("GET /expected", func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-f.current.Load().all:
		case <-req.Context().Done():
		}
	})
	return mux
}
