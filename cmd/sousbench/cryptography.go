package main

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// cryptoSource repeats an operation of crypto.subtle on 64 KiB for half a second, and answers
// with the number of operations in a second.
const cryptoSource = `
const data = crypto.getRandomValues(new Uint8Array(65536)), iv = new Uint8Array(12);
const aes = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]);
const ec = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
const operations = {
  aes: () => crypto.subtle.encrypt({ name: "AES-GCM", iv }, aes, data),
  sha: () => crypto.subtle.digest("SHA-256", data),
  ecdsa: () => crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, ec.privateKey, data),
};
export default {
  async fetch(request) {
    const run = operations[new URL(request.url).searchParams.get("operation")];
    const begin = performance.now();
    let n = 0, now = begin;
    for (; now < begin + 500; now = performance.now()) {
      for (let i = 0; i < 10; i++) await run();
      n += 10;
    }
    return Response.json(n / (now - begin) * 1000);
  },
};`

// cryptography compares crypto.subtle with Go's own cryptography in this process, at 64 KiB, in
// turn.
func cryptography(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "crypto", cryptoSource, `{"timeout_ms": 10000}`); err != nil {
		return nil, err
	}
	operations, err := goOperations()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, operation := range operations {
		share, perSecond, err := shareOf(ctx, o.rounds, "http://"+b.sous.addr+webPath("crypto")+"?operation="+operation.key, operation.run)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{operation.name + ", share of Go's own speed", fmt.Sprintf("%.2f (%.0f/s)", share, perSecond), "≥ 0.8", share >= 0.8})
	}
	return rows, nil
}

// shareOf compares the rate of operations that the function at url answers with, in a second, with
// that of own in this process, in turn. It returns the median share of the rounds, and the
// function's rate in that round.
func shareOf(ctx context.Context, rounds int, url string, own func() error) (share, perSecond float64, err error) {
	type round struct{ share, perSecond float64 }
	var all []round
	for range rounds {
		function, err := operationsOf(ctx, url)
		if err != nil {
			return 0, 0, err
		}
		here, err := repeat(own)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, round{function / here, function})
	}
	slices.SortFunc(all, func(a, b round) int { return cmp.Compare(a.share, b.share) })
	middle := all[len(all)/2]
	return middle.share, middle.perSecond, nil
}

// goOperation is an operation of the function and its counterpart in Go.
type goOperation struct {
	key, name string
	run       func() error
}

func goOperations() ([]goOperation, error) {
	data := make([]byte, 64<<10)
	if _, err := rand.Read(data); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return []goOperation{
		{"aes", "AES-GCM of 64 KiB", func() error {
			gcm.Seal(nil, make([]byte, 12), data, nil)
			return nil
		}},
		{"sha", "SHA-256 of 64 KiB", func() error {
			sha256.Sum256(data)
			return nil
		}},
		{"ecdsa", "ECDSA P-256 of 64 KiB", func() error {
			digest := sha256.Sum256(data)
			_, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
			return err
		}},
	}, nil
}

// repeat runs f for half a second and returns the number of runs in a second.
func repeat(f func() error) (perSecond float64, err error) {
	begin := time.Now()
	n := 0
	for time.Since(begin) < 500*time.Millisecond {
		for range 10 {
			if err := f(); err != nil {
				return 0, err
			}
		}
		n += 10
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

// operationsOf returns the rate that the function answers with.
func operationsOf(ctx context.Context, url string) (perSecond float64, err error) {
	body, err := open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }() // it has been read
	text, err := io.ReadAll(body)
	if err != nil {
		return 0, err
	}
	err = json.Unmarshal(text, &perSecond)
	return perSecond, err
}
