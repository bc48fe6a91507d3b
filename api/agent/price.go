package agent

import "math/big"

// MaxPrices bounds the prices of a tenant.
const MaxPrices = 1000

// Price has the prices of a model for a million tokens each. Provider is "" for every provider that
// has no price of its own for the model. A cache price that is absent is that of input.
type Price struct {
	Provider         string `json:"provider,omitempty"`
	Model            string `json:"model"`
	InputUSD         USD    `json:"input_usd"`
	OutputUSD        USD    `json:"output_usd"`
	CacheCreationUSD *USD   `json:"cache_creation_usd,omitempty"`
	CacheReadUSD     *USD   `json:"cache_read_usd,omitempty"`
}

// Check returns the name and the rule of the first field that is out of its range, "" for none.
func (p *Price) Check() (field, rule string) {
	switch {
	case p.Model == "" || !validName(p.Model):
		return "model", nameRule
	case !validName(p.Provider):
		return "provider", nameRule
	case !p.InputUSD.valid():
		return "input_usd", usdRule
	case !p.OutputUSD.valid():
		return "output_usd", usdRule
	case p.CacheCreationUSD != nil && !p.CacheCreationUSD.valid():
		return "cache_creation_usd", usdRule
	case p.CacheReadUSD != nil && !p.CacheReadUSD.valid():
		return "cache_read_usd", usdRule
	}
	return "", ""
}

// Cost returns the cost of the tokens of u, rounded up to a millionth of a dollar, at most MaxUSD.
func (p *Price) Cost(u *Usage) USD {
	creation, read := p.InputUSD, p.InputUSD
	if p.CacheCreationUSD != nil {
		creation = *p.CacheCreationUSD
	}
	if p.CacheReadUSD != nil {
		read = *p.CacheReadUSD
	}
	sum := new(big.Int)
	for _, part := range [...]struct {
		tokens int64
		price  USD
	}{{u.InputTokens, p.InputUSD}, {u.OutputTokens, p.OutputUSD}, {u.CacheCreationTokens, creation}, {u.CacheReadTokens, read}} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(part.tokens), big.NewInt(int64(part.price))))
	}
	const million = 1_000_000
	sum.Add(sum, big.NewInt(million-1))
	sum.Quo(sum, big.NewInt(million))
	if !sum.IsInt64() {
		return MaxUSD
	}
	return min(USD(sum.Int64()), MaxUSD)
}
