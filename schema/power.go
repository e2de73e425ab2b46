package schema

// Power is one thing that the objects of a Solution can do to a cluster beyond what a Solution may do unasked. Two
// powers are about the same when Name, Reach, Object and Subject are equal; Rules and Effects say how far each goes.
type Power struct {
	Name  PowerName `json:"name"`
	Reach Reach     `json:"reach"`
	Need  Need      `json:"need"`
	// Object has the power: a role, a workload, a webhook configuration.
	Object ObjectRef `json:"object"`
	// File is where the archive has the object; it is not known of what solutionctl makes itself.
	File string `json:"file,omitempty"`
	// Field is where in the object it is, such as rules[2].
	Field string `json:"field,omitempty"`
	// Subject gets the rights of a role, such as ServiceAccount acme-system/operator.
	Subject string `json:"subject,omitempty"`
	// Why describes the power, as in "read every Secret of the cluster".
	Why string `json:"why"`
	// Rules are the rights in question, where it is about rights.
	Rules []PolicyRule `json:"rules,omitempty"`
	// Effects are the single effects, sorted: namespaces, paths of a node, groups, hosts. Of rights they are the namespaces
	// in which they are granted, * for all.
	Effects []string `json:"effects,omitempty"`
}

// PolicyRule is a rule of a role, as RBAC has it.
type PolicyRule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}

// PowerName is the kind of a power. Names are stable: approvals and policies have them.
type PowerName string

// The names of powers over rights.
const (
	PowerAllRights           PowerName = "all-rights"             // every verb on every resource
	PowerChangeRights        PowerName = "change-rights"          // write roles and bindings, or grant more than one has
	PowerActAsOthers         PowerName = "act-as-others"          // impersonate, or use another account's token
	PowerReadSecrets         PowerName = "read-secrets"           // read Secrets outside its own namespaces
	PowerRunPodsElsewhere    PowerName = "run-pods-elsewhere"     // run pods, or commands in pods, outside its own namespaces
	PowerControlNodes        PowerName = "control-nodes"          // reach the kubelet, or change nodes and where pods run
	PowerIssueIdentities     PowerName = "issue-identities"       // approve or sign certificates, change who is trusted
	PowerInterceptRequests   PowerName = "intercept-requests"     // write webhooks, admission policies, CRDs, APIServices
	PowerMarkNamespaces      PowerName = "mark-namespaces"        // change labels of namespaces, such as the Pod Security level
	PowerRawStorage          PowerName = "raw-storage"            // create volumes of any path of a node
	PowerRedirectTraffic     PowerName = "redirect-traffic"       // change where others' requests go
	PowerStarveOrPreempt     PowerName = "starve-or-preempt"      // change priorities and quotas of others
	PowerDeleteOthers        PowerName = "delete-others"          // delete objects that are not its own
	PowerReadOthers          PowerName = "read-others"            // read objects that are not its own, except Secrets
	PowerChangeOthers        PowerName = "change-others"          // change objects that are not its own, in ways without a power of their own here
	PowerInstructsController PowerName = "instructs-controller"   // write what a controller with more rights acts upon
	PowerRightsForPeople     PowerName = "rights-for-people"      // give rights to users, groups or others' accounts
	PowerExtendsRoles        PowerName = "extends-standard-roles" // add to the roles admin, edit and view
	PowerBorrowsRights       PowerName = "borrows-rights"         // bind a role that the archive does not bring
)

// The names of powers of other objects.
const (
	PowerPodOnNode            PowerName = "pod-on-node"            // a pod that is, or can become, the node
	PowerObjectsElsewhere     PowerName = "objects-elsewhere"      // objects in namespaces that are not its own
	PowerInterceptsRequests   PowerName = "intercepts-requests"    // sees or changes requests that are not about its own groups
	PowerDefinesForeignAPIs   PowerName = "defines-foreign-apis"   // CRDs or APIServices of groups that are not its own
	PowerClaimsGroup          PowerName = "claims-group"           // calls a group its own that belongs to others
	PowerDefaultForEveryone   PowerName = "default-for-everyone"   // a default of the whole cluster
	PowerTakesTraffic         PowerName = "takes-traffic"          // gets or opens others' traffic
	PowerOpensToOutside       PowerName = "opens-to-outside"       // can be reached from, or calls, the outside
	PowerReadsOthersMetrics   PowerName = "reads-others-metrics"   // reads or overwrites others' metrics
	PowerSchedulesAboveOthers PowerName = "schedules-above-others" // runs where or before others would not
	PowerUsesForeignData      PowerName = "uses-foreign-data"      // mounts volumes that are not its own
)

// Reach is the extent of a power.
type Reach string

// The reaches, widest first.
const (
	ReachCluster    Reach = "cluster"    // it can become administrator of the cluster
	ReachNode       Reach = "node"       // it can run code on nodes
	ReachNamespaces Reach = "namespaces" // some namespaces that are not its own
	ReachPeople     Reach = "people"     // what users, groups or others' accounts may do
	ReachEveryone   Reach = "everyone"   // defaults or an order that others feel
	ReachTraffic    Reach = "traffic"    // others' network
	ReachOutside    Reach = "outside"    // what is outside the cluster
)

// Reaches returns all reaches, widest first.
func Reaches() []Reach {
	return []Reach{ReachCluster, ReachNode, ReachNamespaces, ReachPeople, ReachEveryone, ReachTraffic, ReachOutside}
}

// Need is the approval that a power requires.
type Need string

// The needs.
const (
	NeedRefused  Need = "refused"  // no approval can allow it
	NeedApproval Need = "approval" // an administrator has to approve it
	NeedShown    Need = "shown"    // plans show it, without asking for approval
)

// Powers lists the powers that an archive requests. `solutionctl inspect --powers` prints it.
type Powers struct {
	Solution string  `json:"solution"`
	Version  string  `json:"version"`
	Powers   []Power `json:"powers"`
	// Summary is the same for people: one line for each kind of power and its subject.
	Summary []string `json:"summary"`
	// Unjudged names the parts that cannot be rendered without a cluster or the values of a site, and why.
	Unjudged []string `json:"unjudged"`
}
