//go:build !unix

package atomicfile

// Lock does nothing: there is no lock on directories here.
func Lock(string) (unlock func(), err error) { return func() {}, nil }
