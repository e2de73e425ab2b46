// Package report defines the output of the tool: progress events, findings and errors.
//
// Every package of the toolchain reports through these three types and nothing else. Progress is an [Event] sent to a
// [Sink]; a judgement on the user's input is a [Finding]; a failure is an [Error], which carries a stable [Code] and, where
// a remedy is known, a hint. Package report never prints: package console renders these types.
//
// Start with [Sink] to follow a long operation, with [CodeOf] to decide what to do about an error.
package report
