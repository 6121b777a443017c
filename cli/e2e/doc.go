// Package e2e tests the program as people build and run it, and with what else there is on
// their machines: Python's readers, published vectors, a kernel that fails and signals that
// end. It has tests only, apart from the tests of package cli because
// they take long, or need more than Go. The longest have the build tag full.
package e2e
