package rest

import (
	"encoding/binary"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
)

// Routes lists the routes of an API that New returned.
func Routes(api http.Handler) gin.RoutesInfo { return api.(*gin.Engine).Routes() }

// ClientsAfter is how many addresses are remembered after n have sent a wrong
// token, one after each interval.
func ClientsAfter(n int, interval time.Duration) int {
	f, now := newFailures(), time.Now()
	for i := range n {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(i))
		f.allow(netip.PrefixFrom(netip.AddrFrom4(b), 32), now)
		now = now.Add(interval)
	}
	return len(f.clients)
}
