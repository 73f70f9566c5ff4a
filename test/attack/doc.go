// Package attack holds what an attacker tries against a running gateway: one
// file for each way in, mostly a table of tries, each with what has to come of
// it. All tries meet the same gateway, with a real Envoy, which has to serve as
// before after each of them.
//
// make test goes through a part of each table, and make soak through the whole
// (GATEHOUSE_TEST_ATTACKS=all).
package attack
