// Package trust decides which signatures count for which Solutions.
//
// A trust store is a directory that belongs to the administrator:
//
//	policy.yaml                      which signers may sign which Solutions; without it every key of the store may
//	keys/NAME.pub                    one public key each
//	roots/NAME/trusted_root.json     authorities that issue certificates or timestamps
//	root.pub                         the key that signs revocations, kept offline
//	revocations.json, revocations.json.sigstore.json
//	revocations.local.json           other revocations, of earlier lists or by the administrator
//
// [Load] reads it strictly: a store that others can write, a file that leads outside, or a document with an unknown
// field makes the whole store unusable, because the alternative is to trust more than intended. [Store.Authenticate]
// identifies the signer; [Store.Rule] and [Store.Judge] decide whether that is enough.
//
// [State] records imports, so that neither an older version nor an older revocation list is taken for a new one. [Add],
// [Remove], [Prepare], [PrepareRevocations] and [PrepareImport] change a store, and [Export] carries it to another
// host.
package trust
