module github.com/token-ramp/ramp-go/internal/test/integration/copytest

go 1.25.0
