// Package bundle writes and reads signatures as sigstore bundles of version 0.3, the form that cosign understands.
//
// A bundle holds one signature. By default it signs a [Statement]: an in-toto statement that names an archive by the
// digest of the whole file and adds its Solution, version, size, expiry and chunk list. It may also sign the digest of
// a file directly, as `cosign sign-blob` does.
//
// [Parse] checks the form only. [Bundle.VerifyKey] and [Bundle.VerifyCertificate] check the signature, offline, with
// sigstore's own verifier; they never contact a log, an authority or an update service. Whether a signer is allowed to
// sign something is for package trust to say.
package bundle
