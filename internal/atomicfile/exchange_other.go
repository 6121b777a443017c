//go:build !linux

package atomicfile

import "errors"

func exchangeNames(a, b string) error { return errors.ErrUnsupported }

func checkMove(path string) error { return nil }
