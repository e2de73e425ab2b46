package deployertest

import "strings"

// ServiceMonitors is the CustomResourceDefinition of ServiceMonitors of the Prometheus operator, as far as [clustertest] needs it.
const ServiceMonitors = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors, singular: servicemonitor, listKind: ServiceMonitorList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// Prometheus is the Prometheus of kube-prometheus-stack with its namespace, as its chart deploys it.
const Prometheus = `{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}
---
{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: kps, namespace: monitoring}, spec: {
  serviceMonitorSelector: {matchLabels: {release: kps}}, serviceMonitorNamespaceSelector: {},
  podMonitorSelector: {matchLabels: {release: kps}}, podMonitorNamespaceSelector: {},
  ruleSelector: {matchLabels: {release: kps, role: alert-rules}}, ruleNamespaceSelector: {}}}`

// MonitoringKinds makes the cluster serve kinds of the Prometheus operator.
func (b *Bed) MonitoringKinds(kinds ...string) {
	b.Helper()
	for _, kind := range kinds {
		b.Server.Put(b.TB, strings.NewReplacer("servicemonitor", strings.ToLower(kind), "ServiceMonitor", kind).Replace(ServiceMonitors))
	}
	b.Cluster.Refresh()
}
