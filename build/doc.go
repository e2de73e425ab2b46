// Package build makes Solution archives: it plans, lays out and writes, and it is the only writer of archives.
//
// A build has three steps, each a value that can be looked at before the next:
//
//   - [Load] reads solution.yaml and finds the project's files: a [Project].
//   - [NewPlan] resolves every image to its manifests and lays the archive out. A [Plan] knows every byte's place before
//     the first layer is read.
//   - [Plan.Write] streams the layers from their sources to their final place, hashing them on the way.
//
// The same project and the same images give the same bytes, whatever the machine, the directory, the day and the number
// of workers: file times are never read, names are sorted, and no host or user is recorded. [Plan.Verify] proves it.
// Memory does not grow with the size of the archive.
package build
