// Package seal holds the keys with which secrets are sealed at rest: a tink
// keyset (deterministic AEAD, AES256-SIV) in a separate file.
//
// Invariants: the same text sealed for the same context under the same key is
// the same sealed text; a sealed text opens for its own context only; nothing
// is sealed with a key that the file does not hold at that moment; what opened
// once opens until the program ends; a key file is replaced as a whole and
// under a lock, never written in place, and is never replaced by a new one; a
// file that other users can access is refused; no error contains a sealed or
// plain text or any part of a key.
package seal
