package kernels

import "embed"

// ptx has the kernels.
//
//go:embed ptx/*.ptx
var ptx embed.FS
