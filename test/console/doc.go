// Package console drives the console in Chromium, with Playwright, against a running program: programs in flows do what
// users do, and specs start what they need. `hack/console.sh --packages` installs Playwright, and `hack/chromium.sh`
// Chromium, from Debian's packages.
package console
