// Package preload keeps the images of deployed Solutions on nodes, so that pods start while every registry is away.
//
// [OnNode] works on one node, through its container runtime: it pulls the images that the node lacks, keeps them from the garbage
// collection of the kubelet, and releases those that an earlier run kept and that are not needed any more. [Run] does the same on nodes of a
// cluster, by a Job for each that runs [OnNode]. [Script] returns the same as lines of a shell. All of them are level-based: a second run
// with the same images changes nothing.
//
// Images come from the catalogue of imported versions only, by the name and the digest that pods have. A Job has no account in the cluster: it gets
// its images as arguments, and its result is the termination message of its pod.
package preload
