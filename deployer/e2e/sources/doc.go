// Package sources packs and deploys what others have published: charts, manifests and kustomizations at pinned commits of
// public repositories, which testdata/sources.yaml lists with the result that each must have.
//
// The repositories are fetched over the network into the user's cache directory. TEST_SOURCES names a directory of clones
// instead, as HOST/OWNER/NAME.
package sources
