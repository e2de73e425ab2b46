package twin

import "golang.org/x/sys/cpu"

// supported reports whether the processor has the instructions of blocksSHA.
func supported() bool {
	const sha = 1 << 29 // CPUID leaf 7, EBX
	return cpu.X86.HasSSSE3 && cpu.X86.HasSSE41 && cpu.X86.HasBMI1 && extendedFeatures()&sha != 0
}

//go:noescape
func blocksSHA(first, second *[8]uint32, constants *[64]uint32, p []byte)

func extendedFeatures() (ebx uint32)
