// Package lint judges whether a packaged application follows the requirements, before it leaves.
//
// [Judge] takes paths of projects, archives and directories, applies the rules of the catalogue, corrects what it is asked
// to, and returns what there is to say; [Why] tells what asks for an image. [Run] is for whoever has opened a target already.
// A [Rule] is one value: identifier, severity, text and a check. Its row stands above the check, its text in rules/ID.md.
package lint
