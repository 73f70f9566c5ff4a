// Package ratelimit_test holds the two rate-limit engines against each other:
// the stock service with its Redis, and the embedded one.
package ratelimit_test
