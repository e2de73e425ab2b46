// Package lint judges whether a packaged application follows the requirements, before it leaves.
//
// A Target is what is judged: an archive, a directory with its content, or a project that would be built. Run applies
// the rules of the catalogue to it and returns findings. A Rule is one value: identifier, severity, documentation and a
// check. Rules lists them all.
package lint
