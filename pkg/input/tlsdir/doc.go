// Package tlsdir keeps secrets in step with the certificates and keys in a directory.
//
// It reads the directory when something in it changes, and once a minute, since
// mounts and NFS send no notifications. A pair that differs from the stored one is
// written like a write of the API, in its own transaction. The files:
//
//	NAME.crt or NAME.pem, and NAME.key
//	NAME/fullchain.pem and NAME/privkey.pem (certbot), also below live/
//	NAME/tls.crt and NAME/tls.key           (a mounted secret of Kubernetes)
//
// Invariants:
//   - A pair is written only when it is complete, its key belongs to its certificate and
//     it has not changed for a moment. Until then the secret stays as it is.
//   - A pair that is already stored is never written again.
//   - A removed file changes nothing: a secret in use does not vanish.
//   - Of several control planes whose directories differ, the newest certificate wins.
//   - No part of a key is in a log line, an error or a condition.
package tlsdir
