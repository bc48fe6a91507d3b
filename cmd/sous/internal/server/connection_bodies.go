package server

import "time"

// A body that has arrived for slowBodyAfter at less than slowBodyRate bytes a second is slow:
// its connection may be replaced by a new one, before any other. A connection that needs as
// long for a small body would rarely notice.
const (
	slowBodyAfter = 2 * time.Second
	slowBodyRate  = 16 << 10
	// slowBodyScan bounds the bodies that one new connection examines, the longest measured first.
	slowBodyScan = 64
)

// slowBody returns a connection whose requests are all bodies that arrive slowly, of p if that is
// not nil. It returns nil for none. For a new connection of an address with few, the bodies of
// addresses with many are slow after evictAfter already: two addresses could otherwise hold all
// connections by beginning new requests. One of the reserve is returned only if there is no other,
// since its place is one of the reserve, too. The caller holds mu.
func (c *connections) slowBody(p *peer, light bool) *openConn {
	least := slowBodyAfter
	if light {
		least = evictAfter
	}
	var kept *openConn
	now, next := time.Now(), c.bodies.Front()
	for n := 0; next != nil && n < slowBodyScan; n++ {
		e := next
		next = e.Next()
		o, _ := e.Value.(*openConn)
		took := now.Sub(o.begun)
		switch {
		case took < least:
			return kept // the others are younger
		case took < slowBodyAfter && !c.isHeavy(o.peer):
			continue
		}
		if float64(o.bytes) >= took.Seconds()*slowBodyRate || o.requests.Load() > o.arriving {
			// Measured again from now on, behind the others: it must not hide them.
			o.begun, o.bytes = now, 0
			c.bodies.MoveToBack(e)
			continue
		}
		if p != nil && o.peer != p {
			continue
		}
		if !o.reserved {
			return o
		}
		if kept == nil {
			kept = o
		}
	}
	return kept
}

// BodyBegins implements rest.Connection.
func (o *openConn) BodyBegins() {
	c := o.all
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[o.Conn] != o {
		return
	}
	o.arriving++
	if o.body == nil {
		o.begun, o.bytes = time.Now(), 0
		o.body = c.bodies.PushBack(o)
	}
}

// BodyArrives implements rest.Connection.
func (o *openConn) BodyArrives(n int) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.bytes += int64(n)
}

// BodyEnds implements rest.Connection.
func (o *openConn) BodyEnds() {
	c := o.all
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.arriving > 1 {
		o.arriving--
		return
	}
	c.endBodies(o)
}

// endBodies undoes BodyBegins, for all bodies of o. The caller holds mu.
func (c *connections) endBodies(o *openConn) {
	if o.body != nil {
		c.bodies.Remove(o.body)
	}
	o.body, o.arriving = nil, 0
}

// RequestBegins implements rest.Connection.
func (o *openConn) RequestBegins() { o.requests.Add(1) }

// RequestEnds implements rest.Connection.
func (o *openConn) RequestEnds() { o.requests.Add(-1) }
