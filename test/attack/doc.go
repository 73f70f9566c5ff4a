// Package attack holds attacks against a running gateway: one file for each
// attack surface, mostly a table of attacks with the expected outcomes. All
// attacks go to the same gateway, with a real Envoy, which must serve as before
// after each of them.
//
// make test runs a part of each table, and make soak the whole
// (GATEHOUSE_TEST_ATTACKS=all).
package attack
