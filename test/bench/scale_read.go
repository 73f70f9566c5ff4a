package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

// pages measures the first and the last page of a list.
func (l *lab) pages(ctx context.Context, f *filled) (section, error) {
	var rows []row
	for _, list := range []string{"/service", "/upstream"} {
		const limit = "?limit=100"
		first, last := list+limit, list+limit
		for next := first; next != ""; {
			last = next
			link, err := f.page(ctx, next)
			if err != nil {
				return section{}, err
			}
			next = link
		}
		var times [2][]float64
		for i := range warmUp + l.opts.scaleSamples {
			for turn := range 2 {
				k := (turn + i) % 2
				began := time.Now()
				if _, err := f.page(ctx, []string{last, first}[k]); err != nil {
					return section{}, err
				}
				if i >= warmUp {
					times[k] = append(times[k], ms(time.Since(began)))
				}
			}
		}
		rows = append(rows, beside("GET "+list, "ms", quantile(times[0], 0.5), quantile(times[1], 0.5)).atMost(1.5))
	}
	return section{Title: fmt.Sprintf("The last page of a list with %d services", f.services), Beside: "first page", Rows: rows}, nil
}

// page reads a page of a list and returns the path of the next.
func (f *filled) page(ctx context.Context, path string) (next string, err error) {
	resp, err := f.get(ctx, path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	link, _, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("Link"), "<"), ">")
	return link, nil
}

// get sends a request and starts to read the answer.
func (c caller) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("GET %s: status %d", path, resp.StatusCode), resp.Body.Close())
	}
	return resp, err
}

// reading is how long the document takes, to its first byte and to its end.
type reading struct{ first, all time.Duration }

func (f *filled) read(ctx context.Context) (reading, error) {
	var r reading
	began := time.Now()
	resp, err := f.get(ctx, "/config")
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return r, err
	}
	r.first = time.Since(began)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return r, err
	}
	r.all = time.Since(began)
	return r, nil
}

// heldBy writes the document of a database in this process and returns the maximum
// growth of the live heap.
func heldBy(ctx context.Context, database string) (bytes float64, err error) {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: database})
	if err != nil {
		return 0, err
	}
	w := &heapWatch{before: liveHeap()}
	err = s.Read(ctx, func(r store.Reader) error { return document.Write(w, r, document.WriteOptions{}) })
	return float64(w.most - min(w.most, w.before)), errors.Join(err, s.Close())
}

// heapWatch discards what is written and checks the heap now and then.
type heapWatch struct {
	before, most   uint64
	written, asked int
}

func (w *heapWatch) Write(b []byte) (int, error) {
	const every = 32 << 10 // bytes
	if w.written += len(b); w.most == 0 || w.written-w.asked >= every {
		w.asked = w.written
		w.most = max(w.most, liveHeap())
	}
	return len(b), nil
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
