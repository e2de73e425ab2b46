//go:build !linux

package durable

import (
	"errors"
	"os"
)

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }
