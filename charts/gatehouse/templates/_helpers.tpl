{{/* The prefix of the names of all objects: short enough for every suffix. */}}
{{- define "gatehouse.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 30 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 30 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 30 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels that select the pods of a part. (dict "root" $ "part" "control-plane") */}}
{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- with .proxy }}
gateway.gatehouse.dev/proxy: {{ . }}
{{- end }}
{{- end }}

{{- define "gatehouse.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: gatehouse
{{ include "gatehouse.selector" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* An image. (dict "root" $ "image" .Values.images.envoy) */}}
{{- define "gatehouse.image" -}}
{{- $repository := .image.repository }}
{{- with .root.Values.images.registry }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository }}
{{- end }}
{{- if .image.digest }}
{{- printf "%s@%s" $repository .image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{/* Where the parts listen: the address before its port. */}}
{{- define "gatehouse.listen" -}}
{{- printf "%s:%v" .root.Values.listenAddress .port }}
{{- end }}

{{- define "gatehouse.serviceAccount" -}}
{{- default (printf "%s-control-plane" (include "gatehouse.fullname" .)) .Values.controlPlane.serviceAccount.name }}
{{- end }}

{{/* Proxies as YAML: each with all keys of .Values.envoy, which its own keys override. */}}
{{- define "gatehouse.proxies" -}}
{{- $list := list }}
{{- $names := dict }}
{{- range $p := .Values.proxies }}
{{- if hasKey $names $p.name }}
{{- fail (printf "proxies: the name %s occurs twice; each proxy needs its own name" $p.name) }}
{{- end }}
{{- $_ := set $names $p.name true }}
{{- $list = append $list (mustMergeOverwrite (deepCopy $.Values.envoy) (deepCopy $p)) }}
{{- end }}
{{- toYaml $list }}
{{- end }}

{{/* Names of proxies, comma-separated: the first is the default. */}}
{{- define "gatehouse.proxyNames" -}}
{{- $names := list }}
{{- range .Values.proxies }}{{ $names = append $names .name }}{{ end }}
{{- join "," $names }}
{{- end }}

{{/* Secret with the certificate of a part. (dict "root" $ "part" "control-plane"|"ratelimit"|"envoy" "proxy" NAME) */}}
{{- define "gatehouse.certificate" -}}
{{- $c := .root.Values.certificates }}
{{- if ne $c.source "existing" }}
{{- printf "%s-%s-tls" (include "gatehouse.fullname" .root) (ternary (printf "envoy-%s" .proxy) .part (eq .part "envoy")) }}
{{- else if eq .part "control-plane" }}
{{- required "certificates.existing.controlPlane: name the Secret of the control plane, with tls.crt, tls.key and ca.crt" $c.existing.controlPlane }}
{{- else if eq .part "ratelimit" }}
{{- required "certificates.existing.ratelimit: name the Secret of the rate-limit engine, with tls.crt, tls.key and ca.crt" $c.existing.ratelimit }}
{{- else }}
{{- required (printf "certificates.existing.proxies.%s: name the Secret of this proxy, with tls.crt, tls.key and ca.crt" .proxy) (get $c.existing.proxies .proxy) }}
{{- end }}
{{- end }}

{{/* Names of the control plane in its certificate, as a YAML list. */}}
{{- define "gatehouse.hosts" -}}
{{- $full := include "gatehouse.fullname" . }}
{{- $hosts := list "localhost" }}
{{- range $service := list "xds" "api" }}
{{- range $end := list "" (printf ".%s" $.Release.Namespace) (printf ".%s.svc" $.Release.Namespace) (printf ".%s.svc.cluster.local" $.Release.Namespace) }}
{{- $hosts = append $hosts (printf "%s-%s%s" $full $service $end) }}
{{- end }}
{{- end }}
{{- toYaml (concat $hosts .Values.certificates.hosts) }}
{{- end }}

{{- define "gatehouse.xdsHost" -}}
{{- printf "%s-xds.%s.svc" (include "gatehouse.fullname" .) .Release.Namespace }}
{{- end }}

{{- define "gatehouse.tokenSecret" -}}
{{- default (printf "%s-api-token" (include "gatehouse.fullname" .)) .Values.controlPlane.api.token.existingSecret }}
{{- end }}

{{- define "gatehouse.keySecret" -}}
{{- default (printf "%s-secret-key" (include "gatehouse.fullname" .)) .Values.rest.secretKey.existingSecret }}
{{- end }}

{{/* Whether the engine of the chart uses the Redis of the chart. */}}
{{- define "gatehouse.redis" -}}
{{- if and .Values.ratelimit.enabled .Values.redis.enabled }}true{{ end }}
{{- end }}

{{/* The fields of every pod. (dict "root" $ "part" ... "v" values "user" 10001 "first" init containers); user 0 is the one that the platform chooses. */}}
{{- define "gatehouse.pod" -}}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
# Environment variables of Services would be read as settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- with .user }}
  runAsUser: {{ int . }}
  runAsGroup: {{ int . }}
  fsGroup: {{ int . }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- with .v.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .v.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .v.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- $first := .first }}
{{- if or $first .v.initContainers }}
initContainers:
  {{- with $first }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .v.initContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The container that waits for Redis: the engine ends at once if it starts first. (dict "root" $ "v" values "address" "HOST:PORT") */}}
{{- define "gatehouse.redisWait" -}}
- name: redis
  image: {{ include "gatehouse.image" (dict "root" .root "image" .root.Values.images.ratelimit) }}
  imagePullPolicy: {{ .root.Values.images.pullPolicy }}
  {{- include "gatehouse.container" . | nindent 2 }}
  command: [/usr/local/bin/ratelimit-health, --wait-for-redis]
  env:
    - {name: REDIS_URL, value: {{ .address | quote }}}
  resources:
    {{- toYaml .v.resources | nindent 4 }}
{{- end }}

{{/* The IP families of a Service. */}}
{{- define "gatehouse.ipFamilies" -}}
{{- with .Values.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The service account of a proxy's Envoys. (dict "root" $ "v" the proxy) */}}
{{- define "gatehouse.envoyAccount" -}}
{{- $account := .v.serviceAccount }}
{{- default (ternary (printf "%s-envoy-%s" (include "gatehouse.fullname" .root) .v.name) "default" $account.create) $account.name }}
{{- end }}

{{/* How replicas of a part are spread. */}}
{{- define "gatehouse.spread" -}}
affinity:
{{- if .v.affinity }}
  {{- toYaml .v.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "gatehouse.selector" . | nindent 14 }}
{{- end }}
topologySpreadConstraints:
{{- if .v.topologySpreadConstraints }}
  {{- toYaml .v.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "gatehouse.selector" . | nindent 8 }}
{{- end }}
{{- end }}

{{- define "gatehouse.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Metadata of an object of a part. (dict "root" $ "part" ... "name" ... "labels" dict "annotations" dict) */}}
{{- define "gatehouse.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "gatehouse.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- include "gatehouse.annotations" (dict "root" .root "annotations" .annotations) }}
{{- end }}

{{/* The annotations of an object, if there are any. (dict "root" $ "annotations" dict) */}}
{{- define "gatehouse.annotations" -}}
{{- with merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Metadata of the pods of a part: without anything that differs between versions of the chart, which would restart them. */}}
{{- define "gatehouse.podMetadata" -}}
labels:
  {{- include "gatehouse.selector" . | nindent 2 }}
  {{- with merge (dict) (default (dict) .v.podLabels) .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- include "gatehouse.annotations" (dict "root" .root "annotations" .v.podAnnotations) }}
{{- end }}

{{/* A PodDisruptionBudget. (dict "root" $ "part" ... "name" ... "max" 1) */}}
{{- define "gatehouse.pdb" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "gatehouse.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .max }}
  # A pod that is not ready serves nobody, and must not block a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "gatehouse.selector" . | nindent 6 }}
{{- end }}

{{/* A HorizontalPodAutoscaler. (dict "root" $ "part" ... "name" ... "v" values) */}}
{{- define "gatehouse.hpa" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "gatehouse.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .name }}
  minReplicas: {{ .v.autoscaling.minReplicas }}
  maxReplicas: {{ .v.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ .v.autoscaling.targetCPUUtilizationPercentage }}
{{- end }}
