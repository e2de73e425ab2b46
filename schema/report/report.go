// Package report is what the tool says: progress events, findings and errors.
//
// Every package of the toolchain reports through these three types and nothing else. Progress is an [Event] sent to
// a [Sink]; a judgement on somebody's input is a [Finding]; a failure is an [Error], which carries a stable [Code] and,
// where someone knows the remedy, a hint. Package report never prints: package console renders what it is given.
//
// Start with [Sink] to follow a long operation, with [CodeOf] to decide what to do about an error.
package report
