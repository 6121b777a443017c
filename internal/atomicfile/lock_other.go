//go:build !unix

package atomicfile

import "context"

// Lock does nothing: there is no lock on directories here.
func Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
