package urlpattern

// state is where the parser of constructor strings is. Those up to Hash are the components.
type state = Field

const (
	stateInit state = iota + BaseURL + 1
	stateAuthority
	stateDone
)

// constructorParser splits a constructor string into the patterns of its components
// (https://urlpattern.spec.whatwg.org/#constructor-string-parsing).
type constructorParser struct {
	input   []rune
	tokens  []token
	result  Init
	state   state
	start   int // the token that the component begins with
	index   int
	advance int
	depth   int // of braces
	inIPv6  int // brackets of the hostname
	special bool
	stop    func() bool
}

// parseConstructor returns the components that a constructor string has.
func parseConstructor(input []rune, stop func() bool) (Init, error) {
	tokens, err := tokenize(input, false)
	if err != nil {
		return nil, err
	}
	p := &constructorParser{input: input, tokens: tokens, result: Init{}, state: stateInit, stop: stop}
	for p.index < len(tokens) && p.state != stateDone {
		p.advance = 1
		if err := p.next(); err != nil {
			return nil, err
		}
		p.index += p.advance
	}
	if _, ok := p.result[Hostname]; ok {
		if _, ok := p.result[Port]; !ok {
			p.result[Port] = ""
		}
	}
	return p.result, nil
}

// next looks at a token. What braces enclose is never the end of a component.
func (p *constructorParser) next() error {
	switch k := p.tokens[p.index].kind; {
	case k == tokenEnd:
		p.end()
		return nil
	case k == tokenOpen:
		p.depth++
		return nil
	case p.depth > 0 && k != tokenClose:
		return nil
	case p.depth > 0:
		p.depth--
	}
	return p.step()
}

// end is reached at the end of the string, for which some states begin again.
func (p *constructorParser) end() {
	switch p.state {
	case stateInit: // there is no protocol: the string is relative
		p.rewind()
		switch {
		case p.is('#'):
			p.change(Hash, 1)
		case p.isSearch():
			p.change(Search, 1)
		default:
			p.change(Pathname, 0)
		}
	case stateAuthority: // there is no user name
		p.rewind()
		p.state = Hostname
	default:
		p.change(stateDone, 0)
	}
}

// step changes the state if the token ends its component.
func (p *constructorParser) step() error {
	switch p.state {
	case stateInit:
		if p.is(':') {
			p.rewind()
			p.state = Protocol
		}
	case Protocol:
		if p.is(':') {
			return p.protocol()
		}
	case stateAuthority:
		if p.is('@') {
			p.rewind()
			p.state = Username
		} else if p.is('/') || p.isSearch() || p.is('#') {
			p.rewind()
			p.state = Hostname
		}
	case Username, Password:
		if p.state == Username && p.is(':') {
			p.change(Password, 1)
		} else if p.is('@') {
			p.change(Hostname, 1)
		}
	case Hostname:
		switch {
		case p.is('['):
			p.inIPv6++
		case p.is(']'):
			p.inIPv6--
		case p.is(':') && p.inIPv6 == 0:
			p.change(Port, 1)
		default:
			p.later(Hostname)
		}
	default:
		p.later(p.state)
	}
	return nil
}

// later changes the state to the component that the token begins, if that comes later in a
// URL.
func (p *constructorParser) later(than state) {
	switch {
	case than < Pathname && p.is('/'):
		p.change(Pathname, 0)
	case than < Search && p.isSearch():
		p.change(Search, 1)
	case than < Hash && p.is('#'):
		p.change(Hash, 1)
	}
}

// protocol ends the protocol. Its pattern is compiled to see whether an authority follows
// without slashes.
func (p *constructorParser) protocol() error {
	c, err := compile(p.component(), canonicalProtocol, &options{})
	if err != nil {
		return err
	}
	p.special, err = c.matchesSpecial(p.stop)
	switch {
	case err != nil:
		return err
	case p.isAt(p.index+1, '/') && p.isAt(p.index+2, '/'):
		p.change(stateAuthority, 3)
	case p.special:
		p.change(stateAuthority, 1)
	default:
		p.change(Pathname, 1)
	}
	return nil
}

// change keeps the component that ends, and those before the new one that are missing.
func (p *constructorParser) change(to state, skip int) {
	from := p.state
	if from != stateInit && from != stateAuthority {
		p.result[from] = p.component()
	}
	if from != stateInit && to <= Hash {
		missing := func(f Field, value string) {
			if _, ok := p.result[f]; !ok {
				p.result[f] = value
			}
		}
		if from == stateAuthority {
			from = Password // the last component that an authority has before its hostname
		}
		if from < Hostname && to > Hostname {
			missing(Hostname, "")
		}
		if from < Pathname && to > Pathname {
			root := ""
			if p.special {
				root = "/"
			}
			missing(Pathname, root)
		}
		if from < Search && to > Search {
			missing(Search, "")
		}
	}
	p.state = to
	p.index += skip
	p.start = p.index
	p.advance = 0
}

func (p *constructorParser) rewind() { p.index, p.advance = p.start, 0 }

// at returns a token, the last one beyond it.
func (p *constructorParser) at(index int) *token { return &p.tokens[min(index, len(p.tokens)-1)] }

// isAt reports whether a token is that character, without a meaning in patterns.
func (p *constructorParser) isAt(index int, c rune) bool {
	t := p.at(index)
	return (t.kind == tokenChar || t.kind == tokenEscapedChar || t.kind == tokenInvalid) &&
		t.to-t.from == 1 && p.input[t.from] == c
}

func (p *constructorParser) is(c rune) bool { return p.isAt(p.index, c) }

// isSearch reports whether the token begins the search: a question mark that does not
// modify a group.
func (p *constructorParser) isSearch() bool {
	if p.is('?') {
		return true
	}
	t := p.at(p.index)
	if t.to-t.from != 1 || p.input[t.from] != '?' {
		return false
	}
	if p.index == 0 {
		return true
	}
	switch p.at(p.index - 1).kind {
	case tokenName, tokenRegexp, tokenClose, tokenAsterisk:
		return false
	}
	return true
}

// component returns the text from the start of the component to the token.
func (p *constructorParser) component() string {
	return string(p.input[p.at(p.start).index:p.at(p.index).index])
}
