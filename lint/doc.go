// Package lint checks whether a packaged application meets the requirements, before it is shipped.
//
// [Judge] takes paths of projects, archives and directories, applies the rules of the catalogue, makes the requested
// corrections, and returns the findings; [Why] returns the objects that use an image. [Run] is for a target that is
// open already. A [Rule] is one value: identifier, severity, text and a check. Its row stands above the check, its text
// in rules/ID.md.
package lint
