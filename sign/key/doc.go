// Package key reads, creates and names the keys that sign archives, and refuses weak ones.
//
// A [Public] key is one that an administrator can trust; its ID is the hint in a signature bundle and its fingerprint
// is for people to compare. A [Signer] is the private half: read from a PEM file with [Load], or held by a KMS, an HSM
// or a token behind one of sigstore's plug-in programs with [Open]. [Generate] makes a new pair in cosign's encrypted
// form, and [Pair.Write] stores it without ever overwriting a file.
//
// Keys of ECDSA P-256, P-384 and P-521, RSA 2048, 3072 and 4096 and Ed25519 are supported and no others. The package
// never reads a password from anywhere: callers hand in a [PasswordFunc], and no error mentions its answer.
package key
