{{- define "perfval.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 53 | trimSuffix "-" }}
{{- end }}

{{/* 46 characters: with the longest suffix, -baseline-approve, a name has at most 63. */}}
{{- define "perfval.fullname" -}}
{{- $name := include "perfval.name" . }}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $made | trunc 46 | trimSuffix "-" }}
{{- end }}

{{- define "perfval.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "perfval.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "perfval.fullname" .) }}
{{- end }}

{{/* Quoted, because YAML takes a release that is called 123 for a number. */}}
{{- define "perfval.selectorLabels" -}}
app.kubernetes.io/name: {{ include "perfval.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Of the pod of `helm test`, which nothing of the operator's may select. `kubectl perfval` selects by part-of. */}}
{{- define "perfval.testLabels" -}}
app.kubernetes.io/name: {{ include "perfval.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: perfvalidation-operator-test
{{- end }}

{{- define "perfval.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: perfvalidation-operator
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels and annotations of an object: (list $ labels annotations), the last two from values or literals. */}}
{{- define "perfval.metadata" -}}
{{- $root := index . 0 }}
{{- $labels := mustMergeOverwrite (dict) (include "perfval.releaseLabels" $root | fromYaml) $root.Values.commonLabels (index . 1) }}
{{- $annotations := mustMergeOverwrite (dict) $root.Values.commonAnnotations (index . 2) -}}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* An image: (list $ image default-tag). A release lists its images with their digests in Chart.yaml. Such a digest applies to
this repository and tag only, but in every registry, because a copy of an image has the same digest. */}}
{{- define "perfval.image" -}}
{{- $root := index . 0 }}
{{- $image := index . 1 }}
{{- $registry := $root.Values.global.imageRegistry | default $image.registry | trimSuffix "/" }}
{{- $tagged := printf "%s:%s" $image.repository ($image.tag | default (index . 2)) }}
{{- $digest := $image.digest }}
{{- range index $root.Chart.Annotations "artifacthub.io/images" | fromYamlArray }}
{{- $listed := splitList "@" .image }}
{{- if and (not $digest) (eq (len $listed) 2) (eq (first $listed | splitn "/" 2)._1 $tagged) }}
{{- $digest = last $listed }}
{{- end }}
{{- end }}
{{- if $digest }}
{{- printf "%s/%s@%s" $registry $image.repository $digest }}
{{- else }}
{{- printf "%s/%s" $registry $tagged }}
{{- end }}
{{- end }}

{{- define "perfval.operatorImage" -}}
{{- include "perfval.image" (list . .Values.image (printf "v%s" .Chart.AppVersion)) }}
{{- end }}

{{/* The rules of a file under files/rbac, which are copies of config/rbac. */}}
{{- define "perfval.rules" -}}
{{- $role := (index . 0).Files.Get (printf "files/rbac/%s.yaml" (index . 1)) | splitList "---\n" | first | fromYaml -}}
rules:
  {{- toYaml $role.rules | nindent 2 }}
{{- end }}

{{/* Who reaches the pods of a run besides each other, as `ingress` of a NetworkPolicy: pods of every release in this namespace. */}}
{{- define "perfval.runIngress" -}}
{{- $namespace := dict "matchLabels" (dict "kubernetes.io/metadata.name" (include "perfval.namespace" .)) }}
{{- $pods := dict "matchLabels" (dict "app.kubernetes.io/name" (include "perfval.name" .)) }}
{{- $operator := dict "from" (list (dict "namespaceSelector" $namespace "podSelector" $pods)) "ports" (list (dict "port" 8000 "protocol" "TCP")) }}
{{- $others := list }}
{{- with .Values.runNetworkPolicy.from }}
{{- $others = list (dict "from" .) }}
{{- end }}
{{- concat (list $operator) $others | toJson }}
{{- end }}

{{/* Environment of the operator, without extraEnv. */}}
{{- define "perfval.env" -}}
- name: PERFVAL_IDENTITY
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
# The operator's own image: its runner is copied into every AIPerf Job.
- name: PERFVAL_RUNNER_IMAGE
  value: {{ include "perfval.operatorImage" . }}
- name: PERFVAL_AIPERF_IMAGE
  value: {{ include "perfval.image" (list . .Values.aiperf.image "") }}
# Freed memory goes back at once. With a delay of a second the operator held 117 MiB beside a tenant who writes
# the worst that it may, and 51 MiB without, both measured with the allocator's version 3.
- name: MIMALLOC_PURGE_DELAY
  value: "0"
# Passes under way, in case that one of them ends the process: the next one reads it.
- name: PERFVAL_IN_FLIGHT_FILE
  value: /run/perfvalidation/in-flight
{{- /* The rest only where it differs from the operator's own default. */}}
{{- with .Values.benchmarkImages }}
- name: PERFVAL_BENCHMARK_IMAGES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.watchNamespaces }}
- name: PERFVAL_WATCH_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.refusedNamespaces }}
- name: PERFVAL_REFUSED_NAMESPACES
  value: {{ concat (list "kube-system" (include "perfval.namespace" $)) . | uniq | join "," | quote }}
{{- end }}
{{- if .Values.nameForeignPods }}
- name: PERFVAL_NAME_FOREIGN_PODS
  value: "true"
{{- end }}
{{- with .Values.dcgmExporterNamespaces }}
- name: PERFVAL_DCGM_EXPORTER_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.runNetworkPolicy }}
{{- if .enabled }}
# Besides pods of the same run: the operator asks the frontend for a completion.
- name: PERFVAL_RUN_NETWORK_POLICY
  value: {{ include "perfval.runIngress" $ | quote }}
{{- end }}
{{- end }}
{{- if not .Values.objectMetrics }}
- name: PERFVAL_OBJECT_METRICS
  value: "false"
{{- end }}
{{- if .Values.secureMetrics.enabled }}
- name: PERFVAL_SECURE_METRICS_ADDR
  value: 0.0.0.0:8443
- name: PERFVAL_METRICS_TLS_FOLDER
  value: /etc/perfvalidation/tls
{{- end }}
{{- if ne .Values.clusterDomain "cluster.local" }}
- name: PERFVAL_CLUSTER_DOMAIN
  value: {{ .Values.clusterDomain | quote }}
{{- end }}
{{- if ne (int .Values.workers) 16 }}
- name: PERFVAL_WORKERS
  value: {{ .Values.workers | quote }}
{{- end }}
{{- if ne .Values.log.level "info" }}
- name: PERFVAL_LOG
  value: {{ .Values.log.level | quote }}
{{- end }}
{{- if ne .Values.log.format "auto" }}
- name: PERFVAL_LOG_FORMAT
  value: {{ .Values.log.format }}
{{- end }}
{{- if ne (include "perfval.fullname" .) "perfvalidation-operator" }}
# Two releases in one namespace do not share a lease.
- name: PERFVAL_LEADER_ELECT_NAME
  value: {{ include "perfval.fullname" . }}
{{- end }}
{{- end }}

{{/* Seconds of a duration, such as 1m30s. */}}
{{- define "perfval.seconds" -}}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]+[smh]" . -1 }}
{{- $sum = add $sum (mul (regexFind "[0-9]+" .) (index (dict "s" 1 "m" 60 "h" 3600) (regexFind "[smh]" .))) }}
{{- end }}
{{- $sum }}
{{- end }}

{{/* Mistakes that the schema cannot see: they concern two values at once. */}}
{{- define "perfval.check" -}}
{{- $refusedByVariable := false }}
{{- range .Values.extraEnv }}
{{- if eq .name "PERFVAL_REFUSED_NAMESPACES" }}
{{- $refusedByVariable = true }}
{{- end }}
{{- end }}
{{- $variables := list }}
{{- range concat (include "perfval.env" . | fromYamlArray) (.Values.extraEnv | default list) }}
{{- if has .name $variables }}
{{- fail (printf "extraEnv sets %s, which is set already, and server-side apply refuses a variable that is there twice: remove it from extraEnv" .name) }}
{{- end }}
{{- $variables = append $variables .name }}
{{- end }}
{{- range $value := list "runNamespaces" "watchNamespaces" }}
{{- range index $.Values $value }}
{{- if has . $.Values.refusedNamespaces }}
{{- fail (printf "%s and refusedNamespaces both name %s: no run would ever begin there" $value .) }}
{{- end }}
{{- if and (not $refusedByVariable) (has . (list "kube-system" (include "perfval.namespace" $))) }}
{{- fail (printf "%s names %s, which the operator refuses: use a namespace of its own for validations, or remove refusedNamespaces and write the whole list into PERFVAL_REFUSED_NAMESPACES in extraEnv" $value .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.runNamespaces (not .Values.rbac.create) }}
{{- fail "runNamespaces is set and rbac.create is false: bind the role in these namespaces yourself, and remove runNamespaces" }}
{{- end }}
{{- if and .Values.runNamespaces .Values.watchNamespaces }}
{{- fail "runNamespaces and watchNamespaces are both set: runs are allowed in the namespaces that are watched, so remove runNamespaces" }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create is false: name the existing one in serviceAccount.name" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled }}
{{- fail "serviceMonitor and podMonitor are both enabled: every series would be scraped twice" }}
{{- end }}
{{- range list .Values.serviceMonitor .Values.podMonitor }}
{{- if and .enabled .scrapeTimeout (gt (include "perfval.seconds" .scrapeTimeout | int) (include "perfval.seconds" .interval | int)) }}
{{- fail (printf "scrapeTimeout is %s and interval %s: Prometheus refuses a monitor whose timeout is the longer one" .scrapeTimeout .interval) }}
{{- end }}
{{- end }}
{{- $alerts := list }}
{{- range (.Files.Get "files/alerts.yaml" | fromYaml).spec.groups }}
{{- range .rules }}
{{- $alerts = append $alerts .alert }}
{{- end }}
{{- end }}
{{- range .Values.prometheusRule.disabled }}
{{- if and $.Values.prometheusRule.enabled (not (has . $alerts)) }}
{{- fail (printf "prometheusRule.disabled names %s, which is no alert: write some of %s" . (join ", " $alerts)) }}
{{- end }}
{{- end }}
{{- with .Values.secureMetrics }}
{{- if and .enabled (not .secretName) }}
{{- fail "secureMetrics.enabled: write a Secret of type kubernetes.io/tls into secureMetrics.secretName" }}
{{- end }}
{{- range list $.Values.serviceMonitor $.Values.podMonitor }}
{{- if and $.Values.secureMetrics.enabled (not $.Values.secureMetrics.tlsConfig) .enabled .namespace (ne .namespace (include "perfval.namespace" $)) }}
{{- fail "secureMetrics.tlsConfig: a monitor in another namespace cannot read the Secret of the certificate; write a tlsConfig for it" }}
{{- end }}
{{- end }}
{{- if and .enabled (not .authorization) $.Values.podMonitor.enabled }}
{{- fail "secureMetrics.authorization: a PodMonitor cannot send Prometheus' own token; use serviceMonitor, or name a Secret with a token" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Port, scheme and credentials of a monitor. */ -}}
{{- define "perfval.scrape" -}}
{{- $secure := .Values.secureMetrics }}
{{- if $secure.enabled -}}
port: https
scheme: https
tlsConfig:
  {{- if $secure.tlsConfig }}
  {{- toYaml $secure.tlsConfig | nindent 2 }}
  {{- else }}
  serverName: {{ include "perfval.fullname" . }}-metrics.{{ include "perfval.namespace" . }}.svc
  ca:
    secret:
      name: {{ $secure.secretName | quote }}
      key: ca.crt
  {{- end }}
{{- if $secure.authorization }}
authorization:
  {{- toYaml $secure.authorization | nindent 2 }}
{{- else }}
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- end }}
{{- else -}}
port: http
{{- end }}
{{- end }}
