// Package ratelimit_test compares the two rate-limit engines: the stock service
// with its Redis, and the embedded one.
package ratelimit_test
