#!/usr/bin/env bash
# Makes the keys and certificates of a node in DIR/pki, and the kubeconfigs.
#
# usage: hack/cluster/keys.sh DIR NAME ADDRESS
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

dir=$1
name=$2
address=$3
pki=$dir/pki

# certificate NAME SUBJECT [ALTERNATIVE NAMES]
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/$1.key" -subj "$2" -out "$pki/$1.csr" 2>/dev/null
	printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth,serverAuth\n%s\n' "${3:+subjectAltName=$3}" >"$pki/$1.ext"
	openssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 30 -extfile "$pki/$1.ext" -out "$pki/$1.crt" 2>/dev/null
}

# kubeconfig FILE CERTIFICATE
kubeconfig() {
	cat >"$1" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: node, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: $(base64 -w 0 <"$pki/ca.crt")}}]
		users: [{name: node, user: {client-certificate-data: $(base64 -w 0 <"$pki/$2.crt"), client-key-data: $(base64 -w 0 <"$pki/$2.key")}}]
		contexts: [{name: node, context: {cluster: node, user: node}}]
		current-context: node
	END
}

umask 077
mkdir "$pki"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/ca.key" -subj /CN=node-ca -days 30 \
	-addext keyUsage=critical,keyCertSign,cRLSign -out "$pki/ca.crt" 2>/dev/null
openssl ecparam -name prime256v1 -genkey -noout -out "$pki/accounts.key"
openssl ec -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub" 2>/dev/null
certificate apiserver /CN=kube-apiserver \
	"DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:10.96.0.1,IP:$address"
certificate admin /O=system:masters/CN=admin
certificate apiserver-kubelet /O=system:masters/CN=apiserver-kubelet
certificate controller-manager /CN=system:kube-controller-manager
certificate scheduler /CN=system:kube-scheduler
certificate proxy /CN=system:kube-proxy
certificate kubelet "/O=system:nodes/CN=system:node:$name" "DNS:$name,IP:$address,IP:127.0.0.1"
kubeconfig "$dir/admin.kubeconfig" admin
for who in controller-manager scheduler proxy kubelet; do
	kubeconfig "$dir/etc/$who.kubeconfig" "$who"
done
