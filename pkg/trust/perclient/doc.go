// Package perclient limits, for each client address, how often something may
// happen. Its memory is bounded: beyond a number of addresses, all further
// addresses share one limit.
package perclient
