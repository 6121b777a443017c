// Package e2e tests the program as people build and run it. Its tests use Python's readers, published vectors, failing
// system calls and signals. They aren't in package cli because they take long, or require more than Go. The longest
// tests have the build tag full.
package e2e
