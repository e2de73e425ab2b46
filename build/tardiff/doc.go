// Package tardiff writes and applies patches between uncompressed tar files, in the format of containers/tar-diff.
//
// A patch is the header "tardf1\n\0" and one zstandard stream of operations. Each makes the next bytes of the new tar file:
// from the patch, or from a file in the old tar file, which an operation opens by its name. [Diff] writes a patch, [Apply] applies one.
//
// A patch is not trusted: its operations read within the files of the old tar file, make exactly as many bytes as the caller
// expects, and are few enough for these. Whether the bytes are right is known by their digest, which the caller compares.
//
// Memory does not depend on the size of the files. [Apply] keeps a number for each file of the old tar file, [Diff] its name.
package tardiff
