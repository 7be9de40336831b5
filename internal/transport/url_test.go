package transport

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An address is one that browsers and Go read alike.
func TestBrowsersAndGoAgreeOnAnAddress(t *testing.T) {
	for address, problem := range map[string]string{
		"https://ramp.example.com":            "",
		"https://ramp-1.example_x.com:8443/a": "",
		"http://127.0.0.1:65535":              "",
		"http://[::1]:8080":                   "",
		"http://localhost":                    "",
		"https://xn--rmp-pla.example":         "",
		"https://10.example.com":              "",
		"http://ramp\u3002example\u3002com":   "must have a host of letters",
		"https://r\u00e4mp.example":           "must have a host of letters",
		"https://$RAMP_HOST":                  "must have a host of letters",
		"https://a<b":                         "must have a host of letters",
		"https://a%2eb":                       "must be an absolute https URL",
		"https://256.256.256.256":             "must have an IP address of four numbers",
		"https://example.0x10":                "must have an IP address of four numbers",
		"https://ramp.example:70000":          "must have a port from 1 to 65535",
		"https://ramp.example:0":              "must have a port from 1 to 65535",
		"https://ramp.example:":               "must have a port from 1 to 65535",
		"https://ramp.example/%0A":            "must not have a control character",
	} {
		_, got := Base(address, false)
		if problem == "" {
			assert.Empty(t, got, address)
			continue
		}
		assert.Contains(t, got, problem, address)
		_, got = Address(address)
		assert.NotEmpty(t, got, address)
	}
}
