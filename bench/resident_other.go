//go:build !unix

package main

import "os"

// maxResident returns 0: it is not known here.
func maxResident(*os.ProcessState) int64 { return 0 }
