// Package versions compares versions of packages by the rules of their kind, and matches them with ranges.
//
// There are rules of dpkg, apk, rpm, Python (PEP 440), Maven, and Semantic Versioning for npm and Go. A kind is named by its type in
// package URLs. ParseRange reads ranges in the syntax of vers, such as ">=1.0|<1.2.3". A version that its rules do not know is an error, and never
// compared as text: a wrong answer would hide a vulnerable package.
package versions
