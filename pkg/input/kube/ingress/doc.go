// Package ingress turns the Ingresses of ingress-nginx into GatewayHosts and RouteFilters (gatehouse import ingress). It
// is pure: text in, objects and notes out.
//
// Two rules hold. What is not translated is a note with its line. And what restricts who may send requests, and is not
// translated, closes its routes: a host is never more open than before.
//
// What ingress-nginx does is in its documentation (user-guide/nginx-configuration/annotations), and in the template and
// the controller where that is silent.
package ingress
