package translate_test

// The documents of the specification, with the group of Gatehouse put in.
const (
	oauth = `
apiVersion: gateway.gatehouse.dev/v1
kind: GlobalConfig
metadata: {name: oauth, namespace: idp, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  name: oauth
  type: globalconfig_oauth
  config: |
    {
      "openid_connect": {
        "provider": {
          "authorization_endpoint": "https://login.example.com/auth",
          "token_endpoint": "https://login.example.com/token"
        },
        "client_id": "gateway",
        "client_secret": "client",
        "client_secret_namespace": "idp",
        "hmac_secret": "hmac",
        "hmac_secret_namespace": "idp",
        "scopes": ["email"],
        "redirect_url": "%REQ(x-forwarded-proto)%://%REQ(:authority)%/oauth2/callback",
        "redirect_path_matcher": "/oauth2/callback",
        "default_signout_path": "/signout"
      },
      "external_oauth_service": {"name": "provider", "namespace": "idp", "port": 443, "protocol": "tls"}
    }`
	idpService = `
apiVersion: v1
kind: Service
metadata: {name: provider, namespace: idp}
spec:
  type: ExternalName
  externalName: login.example.com
  ports: [{port: 443, protocol: TCP, targetPort: 443}]`
	oauthSecrets = `
apiVersion: v1
kind: Secret
metadata: {name: client, namespace: idp}
stringData: {client-secret: "its secret\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: hmac, namespace: idp}
data: {hmac: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHgo=}`
)
