package ramp_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

func catalogParams() ramp.CatalogParams {
	return ramp.CatalogParams{
		ProjectID:   goldenProject,
		SessionID:   goldenSession,
		AccessToken: ramp.NewAccessToken("eyJhbGciOi.J9+ab/c="),
		Network:     ramp.Testnet,
		Lang:        ramp.LangTraditionalChinese,
	}
}

func exchangeParams() ramp.ExchangeParams {
	return ramp.ExchangeParams{
		UUID:        uuid.MustParse(goldenMint),
		AccessToken: ramp.NewAccessToken("eyJhbGciOi.J9+ab/c="),
		SessionID:   goldenSession,
		Network:     ramp.Testnet,
	}
}

func TestGoldenURLs(t *testing.T) {
	catalog := must.Get(ramp.CatalogURL("https://ramp.example", catalogParams()))(t)
	assert.Equal(t, string(golden(t, "2.1-catalog-url.txt")), catalog+"\n")

	exchange := must.Get(ramp.ExchangeURL("https://ramp.example", exchangeParams()))(t)
	assert.Equal(t, string(golden(t, "2.1-exchange-url.txt")), exchange+"\n")
}

func TestCatalogURLLeavesOptionalParametersOut(t *testing.T) {
	c := catalogParams()
	c.Lang = ""
	got := must.Get(ramp.CatalogURL("https://ramp.example", c))(t)
	assert.Equal(t,
		"https://ramp.example/catalog?projectId=prj_7Qm2xVd9&sessionId=hero-4821&accessToken=eyJhbGciOi.J9%2Bab%2Fc%3D"+
			"&platform=web&network=testnet", got)

	for _, lang := range []ramp.Lang{ramp.LangChinese, ramp.LangEnglish, ramp.LangTraditionalChinese} {
		c.Lang = lang
		got := must.Get(ramp.CatalogURL("https://ramp.example", c))(t)
		assert.True(t, strings.HasSuffix(got, "&network=testnet&lang="+string(lang)), got)
	}
}

func TestURLsKeepEveryByte(t *testing.T) {
	var all strings.Builder
	for n := range 256 {
		all.WriteByte(byte(n))
	}
	values := []string{all.String(), "홍길동", "a b+c&d=e?f#g/h%20", " ", "%", "😀"}
	for n := range 256 {
		values = append(values, string([]byte{byte(n)}), string([]byte{'a', byte(n), 'b'}))
	}
	for _, value := range values {
		c := catalogParams()
		// A session and a token come back in headers, which cannot hold everything.
		session := "s" + strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(value, "")) + "s"
		project := "p" + strings.ReplaceAll(session, "\u00ad", "") + "p"
		c.ProjectID, c.SessionID, c.AccessToken = project, session, ramp.NewAccessToken(session)
		got := must.Get(ramp.CatalogURL("https://ramp.example/play", c))(t)
		assertQuery(t, got, "/play/catalog", [][2]string{
			{"projectId", project}, {"sessionId", session}, {"accessToken", session},
			{"platform", "web"}, {"network", "testnet"}, {"lang", "zh-Hant"}})

		e := exchangeParams()
		e.SessionID, e.AccessToken = session, ramp.NewAccessToken(session)
		got = must.Get(ramp.ExchangeURL("https://ramp.example/play", e))(t)
		assertQuery(t, got, "/play/exchange",
			[][2]string{{"uuid", goldenMint}, {"accessToken", session}, {"sessionId", session}, {"network", "testnet"}})
	}
}

// What nobody could use is refused before a player has signed.
func TestAPageThatNobodyCouldUseIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(base *string, e *ramp.ExchangeParams)
		want   string
	}{
		"a session that no order can store": {func(_ *string, e *ramp.ExchangeParams) {
			e.SessionID = strings.Repeat("s", 1025)
		}, "sessionId must have at most 1024 bytes, because it is stored with an order, and not 1025"},
		"a token as it is printed": {func(_ *string, e *ramp.ExchangeParams) {
			e.AccessToken = ramp.NewAccessToken(fmt.Sprint(e.AccessToken))
		}, "accessToken must be the token itself, not how it is printed: see AccessToken"},
		"a token with its scheme": {func(_ *string, e *ramp.ExchangeParams) {
			e.AccessToken = ramp.NewAccessToken("bearer x")
		}, "accessToken must be the token alone: the service writes Bearer before it"},
		"white space after the address": {func(base *string, _ *ramp.ExchangeParams) { *base += "/ " },
			"rampURL must not begin or end with white space"},
		"a character that nobody sees": {func(base *string, _ *ramp.ExchangeParams) {
			*base = "https://ramp\u200b.example"
		}, "rampURL must not have a zero-width space (U+200B)"},
		"the address of the catalog": {func(base *string, _ *ramp.ExchangeParams) { *base += "/catalog/" },
			"rampURL must be the address before /catalog"},
		"the address of the page": {func(base *string, _ *ramp.ExchangeParams) { *base += "/exchange" },
			"rampURL must be the address before /exchange"},
	} {
		base, e := "https://ramp.example/play", exchangeParams()
		test.change(&base, &e)
		_, err := ramp.ExchangeURL(base, e)
		assert.EqualError(t, err, "ramp: "+test.want, name)
	}
	base, e := "https://ramp.example/play", exchangeParams()
	e.SessionID = strings.Repeat("\u73a9", 341) // 1,023 bytes
	_, err := ramp.ExchangeURL(base, e)
	assert.NoError(t, err, "what is long, and what is not ASCII, is made")
}

// A language is optional, so it never costs the page.
func TestALanguageThatTheServiceLacksIsLeftOut(t *testing.T) {
	c := catalogParams()
	c.Lang = "de"
	assert.NotContains(t, must.Get(ramp.CatalogURL("https://ramp.example", c))(t), "lang")
}

// assertQuery checks a URL's path and its parameters, in their order.
func assertQuery(t *testing.T, address, path string, want [][2]string) {
	t.Helper()
	for _, r := range address {
		require.True(t, r > ' ' && r < 0x7f, "%q needs escaping in %q", r, address)
	}
	u := must.Get(url.Parse(address))(t)
	assert.Equal(t, path, u.Path)
	assert.Empty(t, u.Fragment)
	assert.NotContains(t, u.RawQuery, "+", "a plus is a blank to some and a plus to others")

	var got [][2]string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		one := must.Get(url.ParseQuery(pair))(t)
		require.Len(t, one, 1)
		for name, values := range one {
			require.Len(t, values, 1)
			got = append(got, [2]string{name, values[0]})
		}
	}
	assert.Equal(t, want, got)

	// A decoder that does not decode a plus reads the same.
	for i, pair := range strings.Split(u.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		plain := must.Get(url.PathUnescape(value))(t)
		assert.Equal(t, want[i][1], plain)
	}
}

func TestURLsStandBelowTheirBase(t *testing.T) {
	for base, want := range map[string]string{
		"https://ramp.example":           "https://ramp.example/exchange?",
		"https://ramp.example/":          "https://ramp.example/exchange?",
		"https://ramp.example/a/b":       "https://ramp.example/a/b/exchange?",
		"https://ramp.example/a%2Fb%20c": "https://ramp.example/a%2Fb%20c/exchange?",
		"https://ramp.example:8443/a":    "https://ramp.example:8443/a/exchange?",
		"HTTPS://ramp.example":           "https://ramp.example/exchange?",
		"https://[2001:db8::1]:8443":     "https://[2001:db8::1]:8443/exchange?",
		"http://localhost:8080":          "http://localhost:8080/exchange?",
	} {
		t.Run(base, func(t *testing.T) {
			got := must.Get(ramp.ExchangeURL(base, exchangeParams()))(t)
			assert.True(t, strings.HasPrefix(got, want+"uuid="), got)
		})
	}
}

func TestURLsRejectABase(t *testing.T) {
	const form, parts = "rampURL must be an absolute https URL", "rampURL must not have a user"
	for base, want := range map[string]string{
		"":                                 "rampURL is required",
		"ramp.example":                     form,
		"//ramp.example":                   form,
		"https://":                         form,
		"ftp://ramp.example":               form,
		"https://ramp.example:port":        form,
		"https://ramp.example\n":           "rampURL must not have a line break (U+000A)",
		"https://%zz":                      form,
		"https://user:s3cr3t@ramp.example": parts,
		"https://ramp.example?a=b":         parts,
		"https://ramp.example#top":         parts,
	} {
		t.Run(base, func(t *testing.T) {
			got, err := ramp.ExchangeURL(base, exchangeParams())
			assertFields(t, err, want)
			assert.Empty(t, got)
			assert.NotContains(t, err.Error(), "s3cr3t")

			got, err = ramp.CatalogURL(base, catalogParams())
			assertFields(t, err, want)
			assert.Empty(t, got)
		})
	}
}

// One rule decides about http: docker compose, a phone on the LAN and a cluster
// work, and a token never crosses a public network in the clear.
func TestHTTPIsForPrivateHostsOnly(t *testing.T) {
	for address, private := range map[string]bool{
		"http://localhost:8545":                true,
		"http://LOCALHOST.":                    true,
		"http://game.localhost":                true,
		"http://emulator:8090":                 true,
		"http://node.chain.svc.cluster.local.": true,
		"http://node.studio.internal":          true,
		"http://127.0.0.1:8545":                true,
		"http://10.0.0.7:8545":                 true,
		"http://169.254.1.1":                   true,
		"http://[::1]:8545":                    true,
		"http://[::ffff:192.168.1.5]":          true,
		"http://[fd00::1]:8545":                true,
		"http://[fe80::1]":                     true,
		"http://[fe80::1%25eth0]:8545":         true,
		"http://ramp.example":                  false,
		"http://localhost.example":             false,
		"http://8.8.8.8":                       false,
		"http://172.32.0.1":                    false,
		"http://0.0.0.0":                       false,
		"http://[2001:db8::1]":                 false,
		"http://[::ffff:8.8.8.8]":              false,
		"http://134744072":                     false, // 8.8.8.8 to browsers and to getaddrinfo
		"http://0x8080808":                     false,
	} {
		t.Run(address, func(t *testing.T) {
			_, catalog := ramp.CatalogURL(address, catalogParams())
			_, exchange := ramp.ExchangeURL(address, exchangeParams())
			_, client := ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(t)})
			_, rpc := ramp.NewRPC(ramp.RPCConfig{URL: address})
			for _, got := range []struct {
				path string
				err  error
			}{{"rampURL", catalog}, {"rampURL", exchange}, {"ClientConfig.URL", client}, {"RPCConfig.URL", rpc}} {
				if private {
					assert.NoError(t, got.err)
				} else {
					assertFields(t, got.err, got.path+" must be https, unless the host is on a private network")
				}
			}
			_, err := ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(t), InsecureHTTP: true})
			assert.NoError(t, err)
			_, err = ramp.NewRPC(ramp.RPCConfig{URL: address, InsecureHTTP: true})
			assert.NoError(t, err)
		})
	}
}

// ExampleExchangeURL lists what is wrong with an exchange URL.
func TestACatalogURLReportsAllThatIsWrong(t *testing.T) {
	got, err := ramp.CatalogURL("", ramp.CatalogParams{Lang: "ko", Network: "Testnet"})
	assert.Empty(t, got)
	assertFields(t, err, "rampURL is required", "projectId is required", "sessionId is required",
		"accessToken is required",
		"network must be mainnet or testnet")
}

// A header is trimmed in transit and the signed body is not, so the order of such a
// session would be stranded.
func TestASessionOrATokenThatDoesNotSurviveAHeaderIsRejected(t *testing.T) {
	for _, id := range []string{" alice", "alice ", "alice\t", "\nalice", "alice\u00a0", "\u2003alice", "alice\u3000",
		"alice\u0085", "al\x00ice", "alice\xff", "al\nice"} {
		e, c := exchangeParams(), catalogParams()
		e.SessionID, e.AccessToken = id, ramp.NewAccessToken(id) // with which the player could never be authenticated
		c.SessionID, c.AccessToken = id, ramp.NewAccessToken(id)
		_, err := ramp.ExchangeURL("https://ramp.example", e)
		assertFields(t, err, "accessToken must ", "sessionId must ")
		_, err = ramp.CatalogURL("https://ramp.example", c)
		assertFields(t, err, "sessionId must ", "accessToken must ")
		assert.NotContains(t, err.Error(), "alice")
	}
}
