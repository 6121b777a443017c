// Package e2e tests the program as people build and run it, with Python's readers, published vectors, failing system
// calls and signals. It contains only tests. They aren't in package cli because they take long, or require more than Go.
// The longest have the build tag full.
package e2e
