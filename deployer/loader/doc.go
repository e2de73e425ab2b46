// Package loader starts the Solutions of a platform at boot. It reads a LoaderConfiguration, and a Job in the cluster
// deploys it; without changes, no Job runs.
//
// A [Launcher] runs on a host, with the permissions of an administrator. It creates environments and activates
// versions, because a pod must not manage CRDs and cluster-wide permissions. Then it plans everything else, and unless
// the plan is empty it starts a Job with an account that has exactly the permissions of the plan. The Job calls [Run],
// which deploys and writes its progress into the ConfigMap solutionctl-system/loader. The launcher follows that, and
// reports the end. [Launcher.Repair] makes the same Job repair drift, as does a CronJob where the configuration
// requests one.
//
// The parameters of a run are in a ConfigMap, values of charts in a Secret; the Job owns both. An interrupted run is
// finished by the next one: the verbs of package deployer resume when they are called again.
package loader
