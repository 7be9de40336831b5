package main

import (
	"net"
	"net/url"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// warnings lists the unsafe settings of a server. The server starts despite them, but
// should not be used by players.
func warnings(address net.Addr, database, project string, terms terms, proof *ramp.Proof, emulated bool) []string {
	var list []string
	warn := func(unsafe bool, text string) {
		if unsafe {
			list = append(list, text)
		}
	}
	warn(emulated, "the service is emulated with generated keys: set RAMP_HMAC_KEY and RAMP_VALIDATOR_KEY")
	warn(terms.anyRate, "-recipe any approves every rate")
	warn(!emulated && proof == nil, "results are not confirmed on the chain: set RAMP_RPC_URL, -chain-id and -payers")
	warn(proof != nil && proof.AnyFailure, "-any-failure lets any failed transaction give back a mint: set -payers")
	warn(!emulated && project == "", "every project is accepted: set -project")
	warn(!emulated, "anyone can log in as any player, without a password: replace login")
	warn(!isLoopback(address), "HTTP without TLS on an address that other machines can reach: allow access only through a TLS proxy")
	if u, err := url.Parse(database); err == nil && u.Host != "" {
		host := u.Hostname()
		local := host == "localhost" || net.ParseIP(host).IsLoopback() || strings.HasPrefix(u.Query().Get("host"), "/")
		encrypted := strings.HasPrefix(u.Query().Get("sslmode"), "verify-") || u.Query().Get("tls") == "true"
		warn(!local && !encrypted, "the certificate of the database is not verified: set sslmode=verify-full (PostgreSQL) or tls=true (MySQL), unless its network is private")
	}
	return list
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
