// Package e2e tests the program as people build and run it, and with what else there is on
// their machines: Python's readers, published vectors, a kernel that fails and signals that
// end. It has no code but tests, which are kept apart from those of package cli because
// they take long, or need more than Go. The longest have the build tag full.
package e2e
