module github.com/token-ramp/ramp-go/internal/copytest

go 1.25.0
