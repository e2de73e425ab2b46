// Package sign signs archives and verifies them: offline, in one read, at the speed of the disk.
//
// The signature of X.iso lies beside it as X.iso.sigstore.json, one file per signer ([BundleName]). By default it signs
// a statement with the digest of the whole file, the identity of the Solution and the digest of every chunk of 4 MiB;
// [NewStatement] makes the statement, [bundle.SignStatement] signs it. [FileBundle] makes the plain form of `cosign
// sign-blob`.
//
// [Verify] takes an opened file, the bundles beside it and a trust store. It returns a [Verdict], which lists every
// check whatever the outcome, and a reader. Use the archive only through that reader: it compares every byte with the
// signed digests at the moment of reading, so that a file that is changed after [Verify] is noticed. [Open] opens the
// file once, so that the verified file is the one that is read.
//
// The subpackages have one subject each: chunk the digests of pieces, key the keys, bundle the signatures, trust the
// signers and the policy.
package sign
