//go:build !unix

package atomicfile

import "context"

// Lock does nothing, because the system has no locks of directories.
func Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
