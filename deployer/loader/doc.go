// Package loader brings up what a platform has when it has started: it reads a LoaderConfiguration, and a Job in the cluster does
// what it says, so that nothing runs when nothing is to be done.
//
// A [Launcher] runs on a host, with the rights of an administrator. It creates environments and activates versions, because
// definitions and rights on the whole cluster are no matter of a pod; then it plans everything else, and when that is not nothing
// it starts a Job with an account that may do exactly what was planned. The Job calls [Run], which does it and writes into the
// ConfigMap solutionctl-system/loader how far it is; the launcher follows it there and tells the end. [Launcher.Repair] makes the
// same Job bring back what has changed since, as does a CronJob where the configuration wants one.
//
// The parameters of a run lie in a ConfigMap, values of charts in a Secret; both belong to the Job and go with it. Whatever is
// interrupted is finished by the next run: the verbs of package deployer are resumed by being called again.
package loader
