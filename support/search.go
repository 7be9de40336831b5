package support

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// maxCandidates is how many transactions are read for one order, without dust.
const maxCandidates = 10_000

// search fills in the candidates of a report.
func (o *Orders) search(ctx context.Context, report *Report) error {
	order := &report.Order
	if !common.IsHexAddress(order.UserAddress) || len(evidence.ContractsOf(order)) == 0 {
		return invalid.Field("order",
			"has no user address or no token contract, so no transaction can be its own")
	}
	since := order.AcceptedAt.Add(-skew)
	if _, lists := o.config.Store.(rampbooks.OrderLister); lists { // which knows whose the older ones are
		since = order.AcceptedAt.Add(-maxAhead)
	}
	newest, err := evidence.BlockAt(ctx, o.chain, "latest")
	if err != nil {
		return err
	}
	report.LastBlock, _ = newest.Number.Uint64()
	if report.FirstBlock, err = evidence.LastBlockBefore(ctx, o.chain, since, newest); err != nil {
		return err
	}
	witnesses, latest, err := o.witnesses(ctx, order, since, report.FirstBlock, report.LastBlock)
	if err != nil {
		return err
	}
	moves, err := evidence.FindMoves(ctx, o.chain, evidence.Search{
		Direction: order.Direction, Tokens: evidence.ContractsOf(order),
		Account: common.HexToAddress(order.UserAddress),
		First:   report.FirstBlock, Last: report.LastBlock, Witnesses: witnesses})
	if err != nil {
		return err
	}
	// Nobody else but the node that listed the moves knows up to when.
	times := []time.Time{moves.LastTime, evidence.TimeOf(newest.Timestamp)}
	report.LastTime = slices.MinFunc(times, time.Time.Compare)
	report.Incomplete = o.incomplete(order, report.LastTime, latest, len(witnesses), moves.Unlisted)
	o.prover.LoadDecimals(ctx, evidence.ContractsOf(order)...)
	report.Decimals = map[common.Address]int{}
	for _, token := range evidence.ContractsOf(order) {
		if decimals, known := o.prover.DecimalsOf(token); known {
			report.Decimals[token] = decimals
		}
	}
	logs := byTheirTransactions(moves.Logs)
	all := len(logs)
	logs = slices.DeleteFunc(logs, isDust(o.tradeOf(order)))
	report.Dust = all - len(logs)
	if len(logs) > maxCandidates {
		return fmt.Errorf("more than %d transactions moved the token for the user of the order since it: "+
			"look at them in a block explorer", maxCandidates)
	}
	transactions, err := o.readTransactions(ctx, logs)
	if err != nil {
		return err
	}
	if err := o.addCandidates(ctx, report, transactions); err != nil {
		return err
	}
	if slices.ContainsFunc(report.Candidates, func(c Candidate) bool { return c.Unproven != "" }) {
		o.prover.ForgetDecimals(evidence.ContractsOf(order)...) // a proxy may have changed them: ask again
	}
	return o.countHours(ctx, report, newest)
}

// countHours counts [Report].ChainHours, if nothing else speaks against an abandon: it costs calls. It also
// counts those of a mint that has succeeded by a transaction which the chain does not have.
func (o *Orders) countHours(ctx context.Context, report *Report, newest *ramp.Block) error {
	order := &report.Order
	speaks := func(c Candidate) bool { return c.Objection != "" }
	undone := order.Direction == ramp.Mint && order.State == ramp.OrderSucceeded && order.TxHash != ""
	if order.State != ramp.OrderAccepted && !undone ||
		o.config.Now().Before(order.AcceptedAt.Add(maxDelay)) ||
		report.Incomplete != "" || slices.ContainsFunc(report.Candidates, speaks) || o.config.NoEmptyBlocks {
		return nil
	}
	since := order.AcceptedAt
	for _, c := range report.Candidates {
		if c.Equal && c.ended[0].AcceptedAt.After(since) { // whose transaction may have waited, too
			since = c.ended[0].AcceptedAt
		}
	}
	count, err := evidence.HoursWithBlocks(ctx, o.chain, since, report.FirstBlock, newest,
		evidence.MaxDelayHours)
	report.ChainHours = &count
	return err
}

// incomplete returns why the node may not have shown all, or "". An old block may be the
// newest of a chain that makes no empty ones: it is late enough if it is 13 hours later than
// the order, and no order that was accepted after it has ended by a transaction.
func (o *Orders) incomplete(
	order *ramp.Order, newest, latest time.Time, witnesses int, unlisted string,
) string {
	isOld := newest.Before(o.config.Now().Add(-skew))
	isLate := !newest.Before(order.AcceptedAt.Add(maxDelay)) && !latest.After(newest.Add(skew))
	switch {
	case isOld && !isLate:
		return "the node is behind: its newest block is of " + newest.Format(time.RFC3339)
	case witnesses == 0:
		return fmt.Sprintf("nothing shows that the node lists what happened: "+
			"no other %s has ended by a transaction in these blocks", order.Direction)
	default:
		return unlisted
	}
}

// isDust returns what reports whether a transaction moved less than a hundredth of what an order
// trades, as anybody can send many times.
func isDust(of *catalog.Order) func(logs []ramp.Log) bool {
	return func(logs []ramp.Log) bool {
		sum := new(big.Int)
		for i := range logs {
			transfer, _ := logs[i].Transfer()
			if transfer.TokenID != nil || of.Units == nil {
				return false
			}
			sum.Add(sum, transfer.Value)
		}
		return sum.Mul(sum, big.NewInt(100)).Cmp(of.Units) < 0
	}
}

// readTransactions asks the node for transactions.
func (o *Orders) readTransactions(ctx context.Context, logs [][]ramp.Log) ([]found, error) {
	transactions := make([]found, len(logs))
	var calls []ramp.BatchCall
	for i, of := range logs {
		tx := &transactions[i]
		tx.logs = of
		calls = append(calls, evidence.Call(&tx.sent, "eth_getTransactionByHash", of[0].TransactionHash),
			evidence.Call(&tx.receipt, "eth_getTransactionReceipt", of[0].TransactionHash),
			evidence.Call(&tx.block, "eth_getBlockByNumber", of[0].BlockNumber, false))
	}
	if len(calls) == 0 {
		return nil, nil
	}
	calls, err := evidence.AskEach(ctx, o.chain, calls...)
	if err != nil {
		return nil, err
	}
	for i := range transactions {
		transactions[i].unread = cmp.Or(calls[3*i].Err, calls[3*i+1].Err, calls[3*i+2].Err)
	}
	return transactions, nil
}
