//go:build !amd64

package twin

func supported() bool { return false }

func blocksSHA(_, _ *[8]uint32, _ *[64]uint32, _ []byte) { panic("called though it is not supported") }
