package diff

// Objects as charts and operators have them, one for each way in which the API server owns fields: maps, lists with one or several keys,
// lists of words, lists and maps that are one value, quantities, and fields that only a Secret has.
const (
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/managed-by: solutionctl}
  annotations: {checksum/config: 3f2a}
spec:
  replicas: 2
  selector: {matchLabels: {app.kubernetes.io/name: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata: {labels: {app.kubernetes.io/name: web}}
    spec:
      serviceAccountName: web
      securityContext: {runAsNonRoot: true, runAsUser: 65532}
      initContainers:
      - {name: migrate, image: "registry/shop:1.0.0", args: [migrate, --wait]}
      containers:
      - name: web
        image: registry/shop:1.0.0
        command: [/shop]
        args: [--listen, ":8080"]
        env:
        - {name: LOG_LEVEL, value: info}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: database, key: password}}}
        ports:
        - {name: http, containerPort: 8080}
        - {name: metrics, containerPort: 9090}
        resources:
          requests: {cpu: 100m, memory: 0.5Gi}
          limits: {memory: 1024Mi}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
        volumeMounts:
        - {name: config, mountPath: /etc/shop, readOnly: true}
      volumes:
      - {name: config, configMap: {name: web}}
      tolerations:
      - {key: node-role.kubernetes.io/infra, operator: Exists, effect: NoSchedule}
`
	service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: ClusterIP
  selector: {app.kubernetes.io/name: web}
  ports:
  - {name: http, port: 80, targetPort: http}
  - {name: dns-tcp, port: 53, targetPort: 1053, protocol: TCP}
  - {name: dns-udp, port: 53, targetPort: 1053, protocol: UDP}
`
	configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop, labels: {app: web}}
data: {shop.conf: "currency = EUR\n", empty: ""}
`
	secret = `
apiVersion: v1
kind: Secret
metadata: {name: database, namespace: shop, annotations: {example.com/origin: generated}}
type: Opaque
data: {password: Y2FuYXJ5, user: c2hvcA==}
`
	claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, finalizers: [example.com/backup]}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: 1024Mi}}
`
	role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web, namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments], verbs: [get], resourceNames: [web]}
`
	networkPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress:
  - ports: [{protocol: TCP, port: 8080}]
`
	cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec:
  schedule: "0 3 * * *"
  suspend: false
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: report, image: "registry/shop:1.0.0", args: [report]}]
`
	serviceAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
imagePullSecrets: [{name: registry}]
automountServiceAccountToken: false
`
	autoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 5
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
`
	// customResource has no schema that its server knows: its lists are one value each.
	customResource = `
apiVersion: example.com/v1
kind: Shop
metadata: {name: shop, namespace: shop}
spec:
  currency: EUR
  open: false
  limits: {orders: 100, ratio: 0.5}
  tills:
  - {name: front, cashiers: [ada, grace]}
  - {name: back, cashiers: []}
`
)

// kinds are all of them.
var kinds = map[string]string{
	"Deployment": deployment, "Service": service, "ConfigMap": configMap, "Secret": secret, "PersistentVolumeClaim": claim, "Role": role,
	"NetworkPolicy": networkPolicy, "CronJob": cronJob, "ServiceAccount": serviceAccount, "HorizontalPodAutoscaler": autoscaler,
	"Shop": customResource,
}
