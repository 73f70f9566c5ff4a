// Package tlsdir keeps secrets as the pairs of certificate and key in a directory are.
//
// It reads the directory when something in it changes, and once a minute, since
// mounts and NFS do not tell. A pair that differs from what is stored is written
// like a write of the API, one transaction for each. The files:
//
//	NAME.crt or NAME.pem, and NAME.key
//	NAME/fullchain.pem and NAME/privkey.pem (certbot), also below live/
//	NAME/tls.crt and NAME/tls.key           (a mounted secret of Kubernetes)
//
// Invariants:
//   - A pair is written only when it is whole, its key belongs to its certificate and
//     it has not changed for a moment. Until then the secret stays as it is.
//   - A pair that is stored already is never written again.
//   - Files that are gone change nothing: a secret that is in use does not vanish.
//   - Of several control planes whose directories differ, the newest certificate wins.
//   - No part of a key is in a log line, an error or a condition.
package tlsdir
